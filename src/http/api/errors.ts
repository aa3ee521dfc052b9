import type { Context } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { ZodType } from 'zod';
import { StoreUnavailable } from '../../ports/errors.ts';
import type { Log } from '../../ports/log.ts';
import type { WireProblem, WireRefusal } from '../wire/server.ts';
import type { BodyRefusals } from './body.ts';

/** An error as a client sees it: a code of the server's table, its status, and a body in the server's format. */
export interface HttpError extends Error {
  readonly code: string;
  readonly status: ContentfulStatusCode;
  readonly retryAfterSeconds?: number | undefined;
  toBody(): object;
}

/** The differences between the error tables of the two servers. */
export interface ErrorVocabulary<Code extends string> {
  table: Readonly<Record<Code, { status: ContentfulStatusCode; meaning: string }>>;
  /** Codes that every route may answer. */
  common: readonly Code[];
  /** The codes of errors outside of use cases. */
  codes: Readonly<
    Record<
      | 'internal'
      | 'unavailable'
      | 'notFound'
      | 'methodNotAllowed'
      | 'payloadTooLarge'
      | 'requestTimeout'
      | 'headersTooLarge',
      Code
    >
  >;
  /** The names of the server and of its database in messages. */
  words: { server: string; store: string };
  bodySchema(status: number): ZodType;
  isOwn(error: unknown): error is HttpError;
  create(
    code: Code,
    message: string,
    options?: { cause?: unknown; details?: Record<string, unknown> },
  ): HttpError;
  /** 400, for a request as a whole. */
  malformed(message: string): HttpError;
  /** The details of a 413 about the limit. */
  sizeDetails(maxBytes: number): Record<string, unknown>;
}

/** The `Retry-After` while the store does not answer. */
const UNAVAILABLE_RETRY_SECONDS = 5;

/**
 * Converts errors to replies by one server's table of codes. Only this class turns an error into a status, headers and
 * a body.
 */
export class ApiErrors<Code extends string> {
  readonly #vocabulary: ErrorVocabulary<Code>;
  /** Errors for invalid bodies, in the server's format. */
  readonly body: BodyRefusals;
  /** Further codes of a route that takes a body. */
  readonly ofBodies: readonly Code[];

  constructor(vocabulary: ErrorVocabulary<Code>) {
    this.#vocabulary = vocabulary;
    const { codes, malformed, sizeDetails } = vocabulary;
    this.ofBodies = [codes.payloadTooLarge, codes.requestTimeout];
    this.body = {
      malformed,
      tooLarge: (maxBytes) =>
        vocabulary.create(codes.payloadTooLarge, `The request body is larger than ${maxBytes} bytes.`, {
          details: sizeDetails(maxBytes),
        }),
      tooMany: () =>
        vocabulary.create(
          codes.unavailable,
          `The ${vocabulary.words.server} is receiving too many large request bodies now; nothing was done, try again.`,
        ),
    };
  }

  malformed(message: string): HttpError {
    return this.#vocabulary.malformed(message);
  }

  notFound(message: string): HttpError {
    return this.#vocabulary.create(this.#vocabulary.codes.notFound, message);
  }

  methodNotAllowed(methods: readonly string[]): HttpError {
    const { create, codes } = this.#vocabulary;
    return create(codes.methodNotAllowed, `This path answers to ${methods.join(', ')}.`);
  }

  /**
   * Converts any thrown value to the error that a client sees. The cause of a 5xx is only logged. If the database did
   * not answer during a write, the error says that the outcome is unknown.
   */
  from(error: unknown, { method = 'GET' }: { method?: string } = {}): HttpError {
    const { isOwn, create, codes, words } = this.#vocabulary;
    if (isOwn(error)) return error;
    if (error instanceof StoreUnavailable)
      return create(
        codes.unavailable,
        method === 'GET' || method === 'HEAD'
          ? `The ${words.server} cannot reach its ${words.store} now; try again.`
          : `The ${words.server} cannot reach its ${words.store} now, and does not know whether the request was carried out; check before you send it again.`,
        {
          cause: error,
        },
      );
    if (error instanceof HTTPException && error.status < 500) return this.malformed('expected a JSON body');
    return create(
      codes.internal,
      `The ${words.server} failed with an internal error; its log has the cause under the request id.`,
      { cause: error },
    );
  }

  /**
   * Logs a failed request. An internal error is a bug and is logged as an error. Failures of the store or a provider
   * are also logged elsewhere.
   */
  log(log: Log, { code, message, cause }: HttpError, fields: object): void {
    const line = { ...fields, code, err: cause };
    if (code === this.#vocabulary.codes.internal) log.error(line, 'request failed');
    else log.warn({ ...line, reason: message }, 'request failed');
  }

  /** The reply to a request whose route threw. */
  respond(context: Context, thrown: unknown, log: Log): Response {
    const error = this.from(thrown, context.req);
    if (error.status >= 500) this.log(log, error, { request_id: context.get('requestId') });
    context.header('Cache-Control', 'no-store');
    if (error.status === 401) context.header('WWW-Authenticate', 'Bearer');
    if (error.status === 408) context.header('Connection', 'close');
    const isUnavailable = error.code === this.#vocabulary.codes.unavailable;
    const retryAfter = error.retryAfterSeconds ?? (isUnavailable ? UNAVAILABLE_RETRY_SECONDS : undefined);
    if (retryAfter !== undefined) context.header('Retry-After', String(retryAfter));
    return context.json(error.toBody(), error.status);
  }

  /** The reply to bytes that node:http could not parse as a request. */
  refuseWire(problem: WireProblem): WireRefusal {
    const { create, codes, malformed } = this.#vocabulary;
    const error = {
      malformed: () => malformed('expected a well-formed HTTP/1.1 request'),
      timed_out: () =>
        create(codes.requestTimeout, 'The request did not arrive in full within the time allowed.'),
      headers_too_large: () => create(codes.headersTooLarge, 'The request headers are too large.'),
    }[problem]();
    return { status: error.status, code: error.code, body: error.toBody() };
  }

  /** The `responses` of a route: its success and its errors. */
  replies<Status extends number, Schema extends ZodType>(
    status: Status,
    description: string,
    schema: Schema,
    codes: readonly Code[] = [],
  ) {
    const answer = { description, content: { 'application/json': { schema } } };
    return { ...({ [status]: answer } as Record<Status, typeof answer>), ...this.responses(...codes) };
  }

  /** The `responses` of a route for its error codes and the common ones. */
  responses(...codes: Code[]) {
    const { table, common, bodySchema } = this.#vocabulary;
    const meanings = new Map<number, string[]>();
    for (const code of new Set([...codes, ...common])) {
      const { status, meaning } = table[code];
      meanings.set(status, [...(meanings.get(status) ?? []), `\`${code}\`: ${meaning}`]);
    }
    const entries = [...meanings].sort(([a], [b]) => a - b);
    return Object.fromEntries(
      entries.map(([status, texts]) => [
        status,
        { description: texts.join('\n\n'), content: { 'application/json': { schema: bodySchema(status) } } },
      ]),
    );
  }
}
