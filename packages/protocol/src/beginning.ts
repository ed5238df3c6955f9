/** The first characters of a text; none is cut in two. Where it is cut, nothing shows that. */
export function beginningOf(text: string, charsMax: number): string {
  const last = text.charCodeAt(charsMax - 1);
  const isCut = last >= 0xd800 && last <= 0xdbff && text.length > charsMax;
  return text.slice(0, charsMax - (isCut ? 1 : 0));
}
