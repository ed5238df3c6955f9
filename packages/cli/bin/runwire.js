#!/usr/bin/env node
import "../bundle/index.js";
