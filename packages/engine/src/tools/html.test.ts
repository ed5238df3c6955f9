import fc from "fast-check";
import { expect, it } from "vitest";
import { pageOf } from "./html.js";

it("a page is read without what nobody reads", () => {
  const html = `<!DOCTYPE html><html><HEAD><TITLE>A &amp; B</TITLE><style>p { color: red }</style>
    <script>if (1 < 2) document.write("</p>")</script></HEAD><body><!-- not > this -->
    <h1>Head</h1><p>one   <b>two</b>&nbsp;three<br>four</p><a title="a > b" href='x'>link</a>
    <table><tr><td>1<td>2</table><noscript>no</noscript> 3 < 4 &lt;b&gt; &#65;&#x42; &unknown; &#xd800;</body></html>`;
  const { title, text } = pageOf(html);
  expect(title).toBe("A & B");
  expect(text.split("\n").filter((line) => line !== "")).toEqual([
    "Head",
    "one two three",
    "four",
    "link",
    "1 2",
    "3 < 4 <b> AB &unknown; \ufffd",
  ]);
});

it.each(["<", "<!--", "<script>", '<a href="', "<a href='>", "</", "<title>", "&#", "text <b"])(
  "a page that ends in the middle of %j is read up to there",
  (end) => expect(pageOf(`before ${end}`).text).toMatch(/^before|^text/),
);

it("what is written as text is read as text, in whatever elements", () => {
  const word = fc.stringMatching(/^[a-z<>&"']{1,8}$/);
  const element = fc.constantFrom("p", "b", "div", "td", "h1", "x-y", "article");
  fc.assert(
    fc.property(fc.array(fc.tuple(element, word), { maxLength: 20 }), (parts) => {
      const escaped = (text: string): string =>
        text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
      const html = parts.map(([tag, text]) => `<${tag} a="<p>" b='"'>${escaped(text)}</${tag}> `).join("");
      expect(pageOf(html).text.split(/\s+/).join(" ")).toBe(parts.map(([, text]) => text).join(" "));
    }),
  );
});

it("no page takes long: a megabyte of anything is read at once", () => {
  for (const piece of [
    "<",
    "<a",
    "<a b=",
    "<!--",
    "<script>",
    "</",
    "<title>",
    "&",
    "&#",
    "\n",
    " ",
    "<p>",
    "<a x='",
    "<svg></svg>",
  ]) {
    const before = process.cpuUsage();
    pageOf(piece.repeat(1_000_000 / piece.length));
    expect(process.cpuUsage(before).user / 1000, piece).toBeLessThan(5000);
  }
});
