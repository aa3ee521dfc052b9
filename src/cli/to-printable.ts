/** What a terminal acts on, or what turns the direction of the text around it; line breaks and tabs are text. */
const ACTED_ON =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it escapes
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** The text with such characters as `\u001b`: names are whatever a user called something. */
export function toPrintable(text: string): string {
  return text.replace(ACTED_ON, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
