import { createRedactor } from '../../../conformance/text/redact.ts';
import { parseJson } from '../../contract/parse-json.ts';

/** Names of fields, headers and parameters whose values are credentials. */
const SECRET_NAME =
  /(^|_)(api_?key|access_?key|secret(_?key)?|pass(word|wd|phrase)|pwd|token|credentials?|private_?key|session(_?id)?|sid|auth(orization)?|jwt|signature)s?$/;
const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]+?-----END [A-Z ]*PRIVATE KEY-----/g;
/** `Bearer X`, `https://user:X@host`, and `password: X` in a text. */
const IN_TEXT: readonly [name: string, RegExp][] = [
  ['bearer token', /\bbearer\s+([\w.~+/=-]{6,})/gi],
  ['password', /\b[a-z][a-z0-9+.-]*:\/\/[^/\s:@]*:([^/\s@]+)@/gi],
];
const NAMED_IN_TEXT = /([\w-]{2,40})["']?\s*[:=]\s*["']?([^\s"'&;,<>]{4,})/g;
const BASE64 = /^[\w+/-]{24,}={0,2}$/;
/** Shorter values are hidden in fields of such a name only: they are words of other texts. */
const LEAST_CHARS = 4;
const LEAST_COOKIE_CHARS = 6;
/** Parts of this length are found. */
const PART_CHARS = 8;
/** Codings within codings, such as base64 in a form in JSON. */
const MAX_CODINGS = 4;
const HIDDEN = '[hidden]';

/**
 * The credentials of a recording: of headers, queries, forms and bodies. They are redacted by value, wherever they
 * appear: encoded, in other fields, or in part.
 */
export class Credentials {
  readonly #redactor = createRedactor();
  readonly #known = new Set<string>();
  /** The credentials by each of their parts of eight characters. */
  readonly #parts = new Map<string, { name: string; secret: string; at: number }[]>();

  noteHeaders(headers: Headers): void {
    for (const [name, value] of headers) {
      if (/^(proxy-)?authorization$/.test(name)) this.#noteAuthorization(value);
      else if (name === 'cookie') for (const pair of value.split(';')) this.#noteCookie(pair);
      else if (name === 'set-cookie') this.#noteCookie(value.split(';')[0] ?? '');
      else this.#noteField(name, value, 0);
    }
  }

  noteUrl(url: string): void {
    const { searchParams, pathname } = new URL(url);
    for (const [name, value] of searchParams) this.#noteField(name === 'key' ? 'api_key' : name, value, 0);
    this.noteText(decoded(pathname));
  }

  /** Notes the credentials in a body: JSON, a form, or any text. */
  noteText(text: string): void {
    this.#noteText(text, 0);
  }

  /** The text or JSON without the credentials. */
  redact<Json>(json: Json): Json {
    return this.#cleaned(withoutNamed(json)) as Json;
  }

  /** A path with its query. */
  redactPath(path: string): string {
    const [pathname = '', query] = path.split('?');
    const pairs = query?.split('&').map((pair) => {
      const [name = ''] = pair.split('=');
      return isSecret(decoded(name)) ? `${name}=${HIDDEN}` : pair;
    });
    return this.redact(pairs === undefined ? pathname : `${pathname}?${pairs.join('&')}`);
  }

  #add(name: string, secret: string): void {
    if (secret.length < LEAST_CHARS || this.#known.has(secret)) return;
    this.#known.add(secret);
    this.#redactor.add(name, secret);
    for (let at = 0; at + PART_CHARS <= secret.length; at++) {
      const part = secret.slice(at, at + PART_CHARS);
      this.#parts.set(part, [...(this.#parts.get(part) ?? []), { name, secret, at }]);
    }
  }

  #noteAuthorization(value: string): void {
    const [, scheme = '', rest = value] = /^([\w-]+) +(.+)$/.exec(value) ?? [];
    this.#add(`${scheme.toLowerCase()} credential`.trim(), rest);
    if (scheme.toLowerCase() !== 'basic') return;
    const [, password = ''] = /^[^:]*:([\s\S]*)$/.exec(Buffer.from(rest, 'base64').toString()) ?? [];
    this.#add('password', password);
  }

  #noteCookie(pair: string): void {
    const value = pair.slice(pair.indexOf('=') + 1).trim();
    if (value.length < LEAST_COOKIE_CHARS) return;
    this.#add('cookie', value);
    this.#add('cookie', decoded(value));
  }

  #noteField(name: string, value: unknown, depth: number): void {
    if (typeof value === 'string' && isSecret(name)) this.#add(name, value);
    if (typeof value === 'string') this.#noteText(value, depth + 1);
    else if (Array.isArray(value)) {
      for (const item of value) this.#noteField(name, item, depth);
      // A private key may be a list of its lines.
      if (value.every((item) => typeof item === 'string')) this.#noteText(value.join('\n'), depth + 1);
    } else if (typeof value === 'object' && value !== null) this.#noteObject(value, depth);
  }

  #noteObject(object: object, depth: number): void {
    for (const [name, value] of Object.entries(object)) this.#noteField(name, value, depth);
    // Such as an environment variable.
    const { name, key = name, value } = object as Record<string, unknown>;
    if (typeof key === 'string' && isSecret(key)) this.#noteField(key, value, depth);
  }

  #noteText(text: string, depth: number): void {
    if (depth > MAX_CODINGS || text.length < LEAST_CHARS) return;
    const json = /^\s*[[{"]/.test(text) ? parseJson(text) : undefined;
    if (json !== undefined) this.#noteField('', json, depth);
    else this.#noteWords(text, depth);
  }

  #noteWords(text: string, depth: number): void {
    for (const [key] of text.matchAll(PRIVATE_KEY)) {
      this.#add('private key', key);
      this.#add('private key', key.replace(/-----[^-]+-----|\s/g, ''));
    }
    for (const [name, pattern] of IN_TEXT)
      for (const [, secret = ''] of text.matchAll(pattern)) this.#add(name, decoded(secret));
    for (const [, name = '', value = ''] of text.matchAll(NAMED_IN_TEXT))
      if (isSecret(name)) this.#add(name, decoded(value));
    const plain = decoded(text);
    if (plain !== text) this.#noteText(plain, depth + 1);
    const within = fromBase64(text);
    if (within !== undefined) this.#noteText(within, depth + 1);
  }

  #cleaned(json: unknown): unknown {
    if (typeof json === 'string') return this.#cleanedText(json, 0);
    if (typeof json === 'number') return this.#redactor.value(json);
    if (Array.isArray(json)) return json.map((item) => this.#cleaned(item));
    if (typeof json !== 'object' || json === null) return json;
    return Object.fromEntries(
      Object.entries(json).map(([name, item]) => [this.#cleanedText(name, 0), this.#cleaned(item)]),
    );
  }

  #cleanedText(text: string, depth: number): string {
    const cleaned = this.#withoutParts(this.#redactor.text(text));
    // A coding within a coding hides the whole text.
    for (const inner of depth < MAX_CODINGS ? [decoded(cleaned), fromBase64(cleaned)] : [])
      if (inner !== undefined && inner !== cleaned && this.#cleanedText(inner, depth + 1) !== inner)
        return HIDDEN;
    return cleaned;
  }

  /** A quarter of a credential, of at least eight characters, is redacted too: it may be split over fields. */
  #withoutParts(text: string): string {
    let [kept, from] = ['', 0];
    for (let at = 0; at < text.length; at++) {
      for (const { name, secret, at: start } of this.#parts.get(text.slice(at, at + PART_CHARS)) ?? []) {
        let length = PART_CHARS;
        while (start + length < secret.length && text[at + length] === secret[start + length]) length++;
        if (length < secret.length / 4) continue;
        kept += `${text.slice(from, at)}[redacted: ${name}]`;
        from = at + length;
        at = from - 1;
        break;
      }
    }
    return kept + text.slice(from);
  }
}

/** JSON without the values of fields that have such a name, which may be short. */
function withoutNamed(json: unknown, name = ''): unknown {
  if (typeof json === 'string') return isSecret(name) ? HIDDEN : json;
  if (Array.isArray(json)) return json.map((item) => withoutNamed(item, name));
  if (typeof json !== 'object' || json === null) return json;
  return Object.fromEntries(Object.entries(json).map(([key, item]) => [key, withoutNamed(item, key)]));
}

function isSecret(name: string): boolean {
  const words = name.replace(/([a-z\d])([A-Z])/g, '$1_$2').replace(/[^a-zA-Z\d]+/g, '_');
  return SECRET_NAME.test(words.toLowerCase());
}

/** A part of a URL or of a form. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return text;
  }
}

/** Undefined if it is not the base64 of a text. */
function fromBase64(text: string): string | undefined {
  if (!BASE64.test(text)) return undefined;
  try {
    const decodedText = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'base64'));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: a text has none of them
    return /[\0-\x08\x0e-\x1f]/.test(decodedText) ? undefined : decodedText;
  } catch {
    return undefined;
  }
}
