/** Shorter values are words that a log may have. */
const LEAST_SECRET = 8;
const REDACTED = '[redacted]';
/** What a driver says in its own words, at any depth of an answer: it goes to logs and to operators. */
const WORDS = new Set(['detail', 'reason', 'finding', 'remedy', 'text']);
/** How long the lines are in which programs write base64: MIME's and PEM's. */
const BASE64_LINES = [76, 64];

/** Values that a driver was given, which logs and operators must not see: whole, line by line, and as a URL, JSON, base64 or hex has them. */
export class Secrets {
  readonly #forms: readonly string[];

  constructor(values: readonly string[]) {
    const lines = values.flatMap((value) => [value, ...value.split('\n')]).map((line) => line.trim());
    const long = new Set([...values, ...lines].filter(({ length }) => length >= LEAST_SECRET));
    // A line is a part of its value.
    this.#forms = [...new Set([...long].flatMap(formsOf))].sort((a, b) => b.length - a.length);
  }

  clean(text: string): string {
    return this.#forms.reduce((cleaned, form) => cleaned.replaceAll(form, REDACTED), text);
  }

  /** An answer without them in what it says in words. It is one of the protocol, which bounds how deep it is nested. */
  cleanAnswer<T>(answer: T): T {
    return this.#forms.length === 0 ? answer : (this.#cleanWords(answer) as T);
  }

  #cleanWords(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map((item) => this.#cleanWords(item));
    const entries = Object.entries(value).map(([key, of]) => [
      key,
      WORDS.has(key) && typeof of === 'string' ? this.clean(of) : this.#cleanWords(of),
    ]);
    return Object.fromEntries(entries);
  }
}

function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const hex = bytes.toString('hex');
  const json = JSON.stringify(secret).slice(1, -1);
  const texts = [secret, json, ...base64Of(bytes)];
  // Some languages write `/` as `\/` in JSON.
  return [
    ...texts,
    ...texts.map((text) => text.replaceAll('/', '\\/')),
    ...texts.map(encodeURIComponent),
    hex,
    hex.toUpperCase(),
  ];
}

/** Also as a part of something longer, such as `user:password`, whose bytes before it shift it by one or two. */
function base64Of(bytes: Buffer): string[] {
  const shifted = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    const isShared = ((before + bytes.length) * 8) % 6 !== 0;
    return text.slice(Math.ceil((before * 8) / 6), isShared ? -1 : undefined);
  });
  const whole = bytes.toString('base64');
  const lines = BASE64_LINES.flatMap(
    (length) => whole.match(new RegExp(`.{${LEAST_SECRET},${length}}`, 'g')) ?? [],
  );
  const forms = [whole, ...shifted, ...lines];
  return [...forms, ...forms.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'))];
}
