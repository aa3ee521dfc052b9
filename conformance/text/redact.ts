/** Removes secrets from text and JSON values. */
export interface Redactor {
  /**
   * Redacts `secret` to `[redacted: name]` from now on. Of a multi-line secret (a private key) each line over 16
   * characters is redacted too, except `-----BEGIN …-----` lines. An empty secret is ignored.
   */
  add(name: string, secret: string): void;
  /** The text without any of the secrets, in any form that `add` has derived. */
  text(text: string): string;
  /** The JSON value without any of the secrets, in its keys and its values, numbers included. */
  value(json: unknown): unknown;
}

/** A secret of this length or more is redacted anywhere; a shorter one only as a whole word. */
const LONG_ENOUGH = 6;
/** A secret shorter than this is redacted only as a whole value. */
const SHORTEST_WORD = 3;
const MIN_LINE_CHARS = 17;
const MIN_CORE_CHARS = 8;
const MAX_DEPTH = 500;

interface Form {
  text: string;
  marker: string;
  /** Source of the matching regular expression. */
  pattern: string;
}

/**
 * Finds secrets by value: plain, base64 and base64url (also inside longer encoded text), hex, percent-, JSON- and
 * HTML-escaped, longest first. A secret of fewer than 6 characters is matched only as a whole word, and below 3 only as
 * a whole value: alone, after `Bearer `, between quotes or after `=`. It would otherwise damage the report.
 */
export function createRedactor(): Redactor {
  const known = new Set<string>();
  const short: Form[] = [];
  /** By their first `LONG_ENOUGH` characters: the keys of a run have thousands of forms. */
  const long = new Map<string, Form[]>();

  const keep = (text: string, marker: string, pattern: string): void => {
    if (known.has(text)) return;
    known.add(text);
    const form = { text, marker, pattern };
    if (text.length < LONG_ENOUGH) short.push(form);
    else {
      const beginning = text.slice(0, LONG_ENOUGH);
      long.set(beginning, [...(long.get(beginning) ?? []), form]);
    }
  };

  const longIn = (text: string): Form[] => {
    const found = new Set<Form>();
    for (let at = 0; at + LONG_ENOUGH <= text.length; at++)
      for (const form of long.get(text.slice(at, at + LONG_ENOUGH)) ?? [])
        if (text.startsWith(form.text, at)) found.add(form);
    return [...found];
  };

  const add = (name: string, secret: string): void => {
    const marker = `[redacted: ${name}]`;
    if (secret === '') return;
    if (secret.length < LONG_ENOUGH) keep(secret, marker, patternOfShort(secret));
    else
      for (const part of [secret, ...linesOf(secret)])
        for (const form of formsOf(part)) keep(form, marker, escapePattern(form));
  };

  const text = (given: string): string => {
    let result = given;
    // A marker together with its neighbours could form a secret again, hence several passes.
    for (let pass = 0; pass < 4; pass++) {
      const found = longIn(result);
      if (pass === 0) found.push(...short.filter((form) => given.includes(form.text)));
      if (found.length === 0) return result;
      const next = replaceAll(result, found);
      if (next === result) break;
      result = next;
    }
    // A remaining match is part of a marker itself.
    return longIn(result).length > 0 ? '' : result;
  };

  const value = (json: unknown, depth = 0): unknown => {
    if (typeof json === 'string') return text(json);
    if (typeof json === 'number' || typeof json === 'bigint') {
      const redacted = text(String(json));
      return redacted === String(json) ? json : redacted;
    }
    if (typeof json !== 'object' || json === null) return json;
    if (depth > MAX_DEPTH) return '[nested too deeply]';
    if (Array.isArray(json)) return json.map((item) => value(item, depth + 1));
    return Object.fromEntries(Object.entries(json).map(([key, item]) => [text(key), value(item, depth + 1)]));
  };

  return { add, text, value: (json) => value(json) };
}

function replaceAll(text: string, found: readonly Form[]): string {
  const longestFirst = found.toSorted((a, b) => b.text.length - a.text.length);
  const markers = new Map(found.map((form) => [form.text, form.marker]));
  const pattern = new RegExp(longestFirst.map((form) => form.pattern).join('|'), 'g');
  return text.replace(pattern, (match) => markers.get(match) ?? '[redacted]');
}

function patternOfShort(secret: string): string {
  const pattern = escapePattern(secret);
  if (secret.length < SHORTEST_WORD) return `(?<=^|["'=]|Bearer )${pattern}(?=$|["'&;,\\s])`;
  return `(?<![\\w-])${pattern}(?![\\w-])`;
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}

function linesOf(secret: string): string[] {
  const lines = secret.split(/\r?\n/);
  if (lines.length === 1) return [];
  return lines
    .map((line) => line.trim())
    .filter((line) => line.length >= MIN_LINE_CHARS && !/^-----/.test(line));
}

function formsOf(secret: string): Set<string> {
  const bytes = Buffer.from(secret);
  const hex = bytes.toString('hex');
  const forms = [secret, hex, hex.toUpperCase(), ...base64Forms(bytes)];
  forms.push(...percentForms(secret), ...jsonForms(secret), ...htmlForms(secret));
  return new Set(forms.filter((form) => form.length >= LONG_ENOUGH));
}

/** Padded and unpadded, in both alphabets, and the part that is the same at every offset in a longer encoded text. */
function base64Forms(bytes: Buffer): string[] {
  const whole = bytes.toString('base64');
  const cores = [0, 1, 2].map((offset) => {
    const shifted = Buffer.concat([Buffer.alloc(offset), bytes]);
    const end = Math.floor((shifted.length * 8) / 6);
    return shifted.toString('base64').slice(offset === 0 ? 0 : offset + 1, end);
  });
  const forms = [whole, whole.replaceAll('=', ''), ...cores.filter((core) => core.length >= MIN_CORE_CHARS)];
  return forms.flatMap((form) => [form, form.replaceAll('+', '-').replaceAll('/', '_')]);
}

function percentForms(secret: string): string[] {
  const encoded = encodeURIComponent(secret.toWellFormed());
  const strict = encoded.replace(/[!'()*]/g, (character) => `%${hexOf(character).toUpperCase()}`);
  const asForm = new URLSearchParams([['', secret]]).toString().slice(1);
  const forms = [encoded, strict, asForm, encodeURI(secret.toWellFormed())];
  return forms.flatMap((form) => [form, form.replace(/%[0-9A-F]{2}/g, (triplet) => triplet.toLowerCase())]);
}

function jsonForms(secret: string): string[] {
  const escaped = JSON.stringify(secret).slice(1, -1);
  const ascii = escaped.replace(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return [escaped, ascii, escaped.replaceAll('/', '\\/'), ascii.replaceAll('/', '\\/')];
}

function htmlForms(secret: string): string[] {
  const escapeWith = (entities: Readonly<Record<string, string>>): string =>
    secret.replace(/[&<>"']/g, (character) => entities[character] ?? character);
  const named = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };
  return [
    escapeWith(named),
    escapeWith({ ...named, '"': '&quot;' }),
    escapeWith({ ...named, '"': '&quot;', "'": '&#39;' }),
    escapeWith({ ...named, '"': '&quot;', "'": '&#039;' }),
    escapeWith({ ...named, '"': '&quot;', "'": '&#x27;' }),
    escapeWith({ ...named, '"': '&quot;', "'": '&apos;' }),
    escapeWith({ ...named, '"': '&#34;', "'": '&#39;' }),
  ];
}

function hexOf(character: string): string {
  return character.charCodeAt(0).toString(16).padStart(2, '0');
}
