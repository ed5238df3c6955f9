// Values as hostile as a producer may send them, and nothing that JSON itself cannot say: payloads pass
// through JSON once, so they are what `JSON.parse` gives (own `__proto__` members, no -0, no undefined).

import fc from "fast-check";

const hostile = [
  "\r",
  "\n",
  "\r\n",
  "\n\n",
  "\0",
  "\u0085",
  "\u2028",
  "\u2029",
  "\uFEFF",
  "\uD800",
  "\uDC00",
  "👩‍💻",
  "e\u0301",
  '"',
  "\\",
  "\\u0000",
  "data: x",
  "\nid: 9\n\n",
  "</script>",
];

const unit = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: "grapheme", minLength: 1, maxLength: 1 }) },
  { weight: 2, arbitrary: fc.constantFrom(...hostile) },
  { weight: 1, arbitrary: fc.nat(0xffff).map((code) => String.fromCharCode(code)) },
);

/** Any text: line breaks, NUL, U+2028, lone surrogates, emoji, nothing at all. */
export const arbitraryText: fc.Arbitrary<string> = fc.string({ unit, maxLength: 12 });

const member = fc.oneof(
  fc.constantFrom(
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "hasOwnProperty",
    "polluted",
    "",
    "a.b",
  ),
  arbitraryText,
);

const number = fc.oneof(
  fc.integer(),
  fc.maxSafeInteger(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(0, Number.MAX_VALUE, Number.MIN_VALUE, 2 ** 53, 0.1),
);

const { value } = fc.letrec<{ value: unknown; array: unknown[]; object: object }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", maxDepth: 5 },
    fc.constantFrom(null, true, false),
    number,
    arbitraryText,
    tie("array"),
    tie("object"),
  ),
  array: fc.array(tie("value"), { maxLength: 3 }),
  object: fc.dictionary(member, tie("value"), { maxKeys: 3 }),
}));

/** Any JSON value. */
export const arbitraryJson: fc.Arbitrary<unknown> = value.map(throughJson);

/** Any JSON object, often with members named like those of `Object.prototype`. */
export const arbitraryFacts: fc.Arbitrary<{ [member: string]: unknown }> = fc
  .dictionary(member, value, { maxKeys: 3 })
  .map(throughJson);

/** What a wire would make of it. */
export function throughJson<T>(json: T): T {
  return JSON.parse(JSON.stringify(json)) as T;
}
