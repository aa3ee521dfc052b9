import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi';
import type { ErrorCode } from '../../contract/errors.ts';
import { bearer, jsonContent } from '../../http/api/create-app.ts';
import type { ApiErrors } from '../../http/api/errors.ts';
import { type Operation, splitInput } from '../operation.ts';
import { actorOf, createOperatorRouter, type OperatorEnv } from './router.ts';

const CSV = { 'Content-Type': 'text/csv; charset=utf-8' };

/** The routes of views and actions. */
export function operationRoutes<Deps>(
  operations: readonly Operation<Deps>[],
  deps: Deps,
  errors: ApiErrors<ErrorCode>,
): OpenAPIHono<OperatorEnv> {
  const router = createOperatorRouter();
  for (const operation of operations)
    router.openapi(routeOf(operation, errors), async (context) => {
      const { req }: { req: { valid(from: string): object } } = context;
      const input = { ...req.valid('param'), ...req.valid('query'), ...req.valid('json') };
      const reply = await operation.perform(deps, actorOf(context), input);
      // The document names JSON only, and so do the types.
      if (operation.toCsv !== undefined && context.req.header('accept')?.startsWith('text/csv'))
        return context.body(operation.toCsv(reply), 200, CSV) as never;
      return context.json(reply as object, operation.status);
    });
  return router;
}

function routeOf<Deps>(operation: Operation<Deps>, errors: ApiErrors<ErrorCode>) {
  const { method, path, tag, name, summary, description, reply, status } = operation;
  const { params, rest } = splitInput(operation);
  const hasBody = method === 'post' && Object.keys(rest).length > 0;
  return createRoute({
    tags: [tag],
    security: bearer,
    method,
    path,
    operationId: name,
    summary,
    description,
    request: {
      ...(Object.keys(params).length > 0 && { params: z.object(params) }),
      ...(method === 'get' && Object.keys(rest).length > 0 && { query: z.object(rest) }),
      ...(hasBody && {
        body: {
          required: operation.isBodyOptional !== true,
          content: jsonContent(bodyOf(rest, operation.check), operation.example),
        },
      }),
    },
    responses: errors.replies(status, ...reply, [
      'unauthorized',
      ...(operation.needs === 'viewer' ? [] : ['forbidden' as const]),
      ...operation.errors,
      ...(hasBody ? errors.ofBodies : []),
    ]),
  });
}

function bodyOf(fields: Record<string, z.ZodType>, check: Operation<never>['check']): z.ZodType {
  const body = z.object(fields);
  return check === undefined ? body : body.refine(check.isValid, check);
}
