import { TOKEN_PATH } from '../contract/paths.ts';
import { isObject, parseJson, stringField } from '../text/json.ts';
import type { HttpAnswer } from './transport.ts';

/** A shorter value may be an ordinary word. */
const SHORTEST_SECRET = 8;
/** Each known secret makes redaction slower, and some targets set a new cookie with every answer. */
const MOST_COOKIES = 50;
/** One cookie in a header that joins several. The comma in a date is not followed by a name with `=`. */
const COOKIE = /(^|,)(\s*[^;,=\s]+=)([^;,]+)/g;

/** Finds secrets in the target's answers, before any part of the answer is written. */
export class ResponseSecrets {
  readonly #onSecret: (name: string, secret: string) => void;
  readonly #cookies = new Set<string>();

  constructor(onSecret: (name: string, secret: string) => void) {
    this.#onSecret = onSecret;
  }

  /** Reports the secrets, and returns the headers without cookie values. */
  keep(path: string, { status, headers, body }: HttpAnswer): Readonly<Record<string, string>> {
    if (path === TOKEN_PATH) this.#keepTokens(parseJson(body), status);
    const cookies = headers['set-cookie'];
    if (cookies === undefined) return headers;
    return { ...headers, 'set-cookie': this.#withoutValues(cookies) };
  }

  #keepTokens(answer: unknown, status: number): void {
    const token = stringField(answer, 'access_token');
    if (token !== undefined) this.#onSecret('access token', token);
    if (status < 200 || status >= 300) return;
    for (const text of textsIn(answer))
      if (text.length >= SHORTEST_SECRET && text !== token) this.#onSecret('token answer', text);
  }

  #withoutValues(cookies: string): string {
    return cookies.replace(COOKIE, (whole, before: string, name: string, value: string) => {
      if (value.length < SHORTEST_SECRET) return whole;
      if (this.#cookies.size < MOST_COOKIES && !this.#cookies.has(value)) {
        this.#cookies.add(value);
        this.#onSecret('cookie', value);
      }
      return `${before}${name}[redacted: cookie]`;
    });
  }
}

/** All strings except `token_type` and `scope`. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, field]) =>
    name === 'token_type' || name === 'scope' ? [] : textsIn(field),
  );
}
