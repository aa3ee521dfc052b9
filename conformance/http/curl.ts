import { isPrintable } from '../text/printable.ts';
import type { HttpRequest } from './transport.ts';

/** The environment variable for each redacted secret in a command. */
const credentialVariables: Readonly<Record<string, string>> = {
  'api key': 'BERTH_API_KEY',
  'second api key': 'BERTH_SECOND_API_KEY',
  'other account key': 'BERTH_OTHER_ACCOUNT_KEY',
  username: 'BERTH_USERNAME',
  password: 'BERTH_PASSWORD',
  'access token': 'BERTH_ACCESS_TOKEN',
};

/** Linux refuses a longer argument (128 KiB), so a longer body goes through a pipe. */
const MAX_ARGUMENT_BYTES = 100_000;

/** Literal text, or a reference to an environment variable. */
type Piece = { literal: string } | { variable: string };

/**
 * The curl command for the same request: same method, path, headers and body bytes, and no headers of curl's own.
 * `[redacted: api key]` becomes `$BERTH_API_KEY` (see `credentialVariables`). For a POSIX shell, safe to show and to
 * paste, on one line except for line ends in the body: `printf` writes invisible characters in octal.
 */
export function toCurl(request: HttpRequest): string {
  const { method, headers } = request;
  // A POST without a body has `content-length: 0`, as HTTP clients send it.
  const body = request.body ?? (['POST', 'PUT', 'PATCH'].includes(method) ? '' : undefined);
  const parts = ['curl', '-i', '-sS', ...(method === 'HEAD' ? ['--head'] : ['-X', quote(method)])];
  parts.push(...targetOf(request.url));
  for (const [name, value] of Object.entries(headers))
    parts.push('-H', quote(value === '' ? `${name};` : `${name}: ${value}`, 'latin1'));
  for (const name of unwanted(headers, body)) parts.push('-H', `'${name}:'`);
  if (body === undefined) return parts.join(' ');
  if (fitsArgument(body)) return [...parts, '--data-binary', quote(body)].join(' ');
  return `${toPrintf(body, 'utf8')} | ${[...parts, '--data-binary', '@-'].join(' ')}`;
}

function targetOf(url: string): string[] {
  // The URL as the transport sends it: unchanged if HTTP allows it.
  const written = /^[\x21-\x7e]*$/.test(url) || !URL.canParse(url) ? url : new URL(url).href;
  const options = [];
  if (/[[\]{}]/.test(written)) options.push('--globoff');
  if (/\/\.|%2e/i.test(written)) options.push('--path-as-is');
  if (/^https:/i.test(written)) options.push('--http1.1');
  return [...options, quote(written)];
}

/** Headers that curl would add and the request did not have. */
function unwanted(headers: Readonly<Record<string, string>>, body: string | undefined): string[] {
  const added = ['User-Agent', 'Accept', ...(body === undefined ? [] : ['Content-Type', 'Expect'])];
  const has = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  return added.filter((name) => !has.has(name.toLowerCase()));
}

function fitsArgument(body: string): boolean {
  // curl takes `@name` for a file, and a shell's argument ends at NUL.
  return !body.startsWith('@') && isShown(body) && Buffer.byteLength(body) <= MAX_ARGUMENT_BYTES;
}

/** Whether all characters are visible; line ends are allowed inside quotes. */
function isShown(text: string): boolean {
  return isPrintable(text.replaceAll('\n', ''));
}

/** Quotes one shell word. */
function quote(text: string, encoding: 'utf8' | 'latin1' = 'utf8'): string {
  const isPlain = encoding === 'latin1' ? /^[\x20-\x7e]*$/.test(text) : isShown(text);
  if (!isPlain) return `"$(${toPrintf(text, encoding)})"`;
  const pieces = toPieces(text);
  const literals = pieces.map((piece) => ('literal' in piece ? piece.literal : '')).join('');
  if (pieces.every((piece) => 'literal' in piece)) return /^[\w./:=-]+$/.test(text) ? text : single(text);
  // It contains nothing special inside double quotes, including `!` of an interactive shell.
  if (!/[$`"\\!]/.test(literals)) {
    const inside = pieces
      .map((piece) => ('literal' in piece ? piece.literal : `\${${piece.variable}}`))
      .join('');
    return `"${inside.replace(/\$\{(\w+)\}(?!\w)/g, '$$$1')}"`;
  }
  return pieces
    .map((piece) => ('literal' in piece ? single(piece.literal) : `"$${piece.variable}"`))
    .join('');
}

function single(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** A printf command that writes the text, with octal escapes, which every POSIX shell supports. */
function toPrintf(text: string, encoding: 'utf8' | 'latin1'): string {
  const pieces = toPieces(text);
  const format = pieces
    .map((piece) => ('literal' in piece ? toFormat(piece.literal, encoding) : '%s'))
    .join('');
  const variables = pieces.flatMap((piece) => ('literal' in piece ? [] : [`"$${piece.variable}"`]));
  return ['printf', single(format), ...variables].join(' ');
}

function toFormat(text: string, encoding: 'utf8' | 'latin1'): string {
  return text
    .replaceAll('\\', '\\\\')
    .replaceAll('%', '%%')
    .replace(/[^\x20-\x7e]/gu, (character) => {
      if (encoding === 'utf8' && isPrintable(character)) return character;
      return [...Buffer.from(character, encoding)]
        .map((byte) => `\\${byte.toString(8).padStart(3, '0')}`)
        .join('');
    });
}

function toPieces(text: string): Piece[] {
  const pieces: Piece[] = [];
  let rest = 0;
  for (const match of text.matchAll(/\[redacted: ([^\]]+)\]/g)) {
    const variable = Object.hasOwn(credentialVariables, match[1] ?? '')
      ? credentialVariables[match[1] ?? '']
      : undefined;
    if (variable === undefined) continue;
    if (match.index > rest) pieces.push({ literal: text.slice(rest, match.index) });
    pieces.push({ variable });
    rest = match.index + match[0].length;
  }
  if (rest < text.length || pieces.length === 0) pieces.push({ literal: text.slice(rest) });
  return pieces;
}
