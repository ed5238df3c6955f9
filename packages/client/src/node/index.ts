export { fileSource, lineSource } from "./file.js";
