import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { bearer, jsonContent } from '../../http/api/create-app.ts';
import { createHeaders, REPLAYED } from '../../http/api/idempotency.ts';
import type { ErrorCode } from '../contract/errors.ts';
import { CreateOnce, notOnce } from '../model/create-once.ts';
import type { Caller } from '../model/own-rows.ts';
import type { HttpEnv } from './deps.ts';
import { createRouter, errors } from './errors.ts';

type Shape = Readonly<Record<string, z.ZodType>>;

/** The request, as its handler receives it. `caller` is set wherever a credential is required. */
interface Call<P extends Shape, Q extends Shape, B extends z.ZodType> {
  caller: Caller;
  params: z.output<z.ZodObject<P>>;
  query: z.output<z.ZodObject<Q>>;
  body: z.output<B>;
  /** Of a create. */
  once: CreateOnce;
  context: Context<HttpEnv>;
}

/** A route: its entry in the document, and its handler. */
interface Route<P extends Shape, Q extends Shape, B extends z.ZodType, R extends z.ZodType> {
  operationId: string;
  summary: string;
  description: string;
  /** Default: a bearer token. */
  security?: Record<string, string[]>[];
  params?: P;
  query?: Q;
  body?: B;
  example?: object;
  status?: 200 | 201;
  /** Whether an Idempotency-Key makes it a create that is carried out once. */
  isOnce?: boolean;
  /** A description of the reply, its schema, and the error codes of the route. */
  reply: readonly [description: string, schema: R, codes?: readonly ErrorCode[]];
  /** Returns the reply, or a response that has it. */
  run(call: Call<P, Q, B>): z.input<R> | Response | Promise<z.input<R> | Response>;
}

type Method = 'get' | 'post' | 'patch' | 'delete';

/** Routes under one heading of the document. */
export class Routes {
  readonly router: OpenAPIHono<HttpEnv> = createRouter();
  readonly #tag: string;

  constructor(tag: string) {
    this.#tag = tag;
  }

  add<
    R extends z.ZodType,
    P extends Shape = Record<never, never>,
    Q extends Shape = Record<never, never>,
    B extends z.ZodType = z.ZodUndefined,
  >(method: Method, path: string, route: Route<P, Q, B, R>): this {
    const { params, query, body, example, status = 200, isOnce = false, security = bearer, run } = route;
    const { operationId } = route;
    const [description, schema, ownCodes = []] = route.reply;
    const codes = isOnce ? [...ownCodes, 'IDEMPOTENCY_MISMATCH' as const] : ownCodes;
    const described = createRoute({
      tags: [this.#tag],
      security,
      method,
      path,
      operationId,
      summary: route.summary,
      description: route.description,
      request: {
        ...(params && { params: z.object(params) }),
        ...(isOnce && { headers: createHeaders }),
        ...(query && { query: z.object(query) }),
        ...(body && { body: { required: true, content: jsonContent(body, example) } }),
      },
      responses: errors.replies(status, description, schema, body ? [...codes, ...errors.ofBodies] : codes),
    });
    this.router.openapi(described, async (context) => {
      const { req }: { req: { valid(from: string): unknown } } = context;
      const given = { params: req.valid('param'), query: req.valid('query'), body: req.valid('json') };
      const caller = context.get('caller');
      const { 'idempotency-key': key } = (req.valid('header') ?? {}) as z.output<typeof createHeaders>;
      const once =
        key === undefined ? notOnce : new CreateOnce(caller.userId, key, operationId, given.body as object);
      const answer = await run({ ...given, caller, once, context } as Call<P, Q, B>);
      if (once.isReplay) {
        context.set('isReplay', true);
        context.header(REPLAYED, 'true');
      }
      const json = (reply: object) => context.json(reply, status);
      return answer instanceof Response ? (answer as ReturnType<typeof json>) : json(answer as object);
    });
    return this;
  }
}
