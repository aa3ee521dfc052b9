import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi';
import type { HonoRequest } from 'hono';
import { bearer, jsonContent } from '../../http/api/create-app.ts';
import type { RequestEnv } from '../../http/api/request-context.ts';
import { errors } from '../../orchestrator/http/errors.ts';
import type { Log } from '../../ports/log.ts';
import type { ArmedView } from '../faults/arming.ts';
import type { Journal } from '../journal/journal.ts';
import type { SandboxOptions } from '../options.ts';
import type { SandboxParts } from '../parts.ts';
import type { ScenarioTarget } from '../state/run-scenario.ts';
import type { Snapshots } from '../state/snapshots.ts';
import { doneSchema } from './schemas.ts';

export interface ControlDeps {
  /** The bearer token that its requests must carry. */
  key: string;
  sandbox: SandboxParts;
  /** The certificate of the CA, in PEM, if the sandbox is served over TLS. */
  ca(): Promise<string | undefined>;
  /** Where this control API answers. */
  controlOrigin(): string;
  /** Further sandboxes, which answer below a path of this one. */
  sandboxes: {
    add(options: SandboxOptions): Promise<{
      id: string;
      path: string;
      sandbox: Pick<SandboxParts, 'seed' | 'defaultAccount'>;
    }>;
    /** Returns the faults that were required to trigger and never did. @throws {ApiError} if there is none of that id */
    end(id: string): Promise<ArmedView[]>;
  };
  journal: Journal;
  snapshots: Snapshots;
  scenarios: ScenarioTarget;
  /**
   * Sends a request to the operator API of a provider or the `marketplace`, with its own path. @throws {ApiError} if there is
   * no such server
   */
  operate(server: string, path: string, request: Request): Promise<Response>;
  log: Log;
}

type Params<Path extends string> = Path extends `${string}{${infer Name}}${string}`
  ? Record<Name, string>
  : unknown;

/** What a route does, and what the API's document says about it. */
interface Row<Path extends string, Input extends z.ZodType, Reply extends z.ZodType> {
  /** Its `operationId`. */
  id: string;
  summary: string;
  description?: string;
  /** The query of a GET, or the body of a POST. */
  input?: Input;
  example?: object;
  isBodyOptional?: true;
  /** 201 if it creates something. */
  status?: 201;
  /** A description of the reply, and its schema. Default: that it is done. */
  reply?: readonly [description: string, schema: Reply];
  run(
    deps: ControlDeps,
    input: z.output<Input> & Params<Path>,
    request: Request,
  ): z.input<Reply> | Promise<z.input<Reply>>;
}

/** Adds a route to the control API. */
export type AddRoute = (router: OpenAPIHono<RequestEnv>, deps: ControlDeps) => void;

/** Returns a function that makes the routes of a section of the API's document. */
export function routesOf(tag: 'Sandbox' | 'Clock' | 'State' | 'Faults' | 'Transitions' | 'Journal') {
  return <
    const Path extends string,
    Input extends z.ZodType = z.ZodObject,
    Reply extends z.ZodType = z.ZodUnknown,
  >(
    method: 'get' | 'post' | 'delete',
    path: Path,
    row: Row<Path, Input, Reply>,
  ): AddRoute => {
    const described = describe(tag, method, path, row);
    return (router, deps) => {
      router.openapi(described, async (context) => {
        const given = inputOf(context.req);
        const replied = await row.run(deps, given as Parameters<typeof row.run>[1], context.req.raw);
        return context.json(
          row.reply === undefined ? { done: true } : (replied as object),
          row.status ?? 200,
        );
      });
    };
  };
}

function inputOf(request: HonoRequest<string, Record<'param' | 'query' | 'json', object>>): object {
  return { ...request.valid('param'), ...request.valid('query'), ...request.valid('json') };
}

function describe(
  tag: string,
  method: 'get' | 'post' | 'delete',
  path: string,
  { id, summary, description, input, reply, ...row }: Row<string, z.ZodType, z.ZodType>,
) {
  const [about, schema]: readonly [string, z.ZodType] = reply ?? ['Done.', doneSchema];
  const hasBody = method === 'post' && input !== undefined;
  const params = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, z.string()] as const);
  const body = hasBody && {
    required: row.isBodyOptional !== true,
    content: jsonContent(input, row.example),
  };
  return createRoute({
    tags: [tag],
    security: bearer,
    method,
    path,
    operationId: id,
    summary,
    description,
    request: {
      ...(params.length > 0 && { params: z.object(Object.fromEntries(params)) }),
      ...(method === 'get' && input !== undefined && { query: input as z.ZodObject }),
      ...(body && { body }),
    },
    responses: errors.replies(row.status ?? 200, about, schema, [
      'unauthorized',
      ...(hasBody ? errors.ofBodies : []),
      ...(params.length > 0 ? (['not_found'] as const) : []),
    ]),
  });
}
