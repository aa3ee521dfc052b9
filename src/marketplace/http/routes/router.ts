import { OpenAPIHono } from '@hono/zod-openapi';
import { invalidRequest, toIssues } from '../../contract/errors.ts';
import type { HttpEnv } from '../deps.ts';

/** A router whose routes are the single source of the OpenAPI document; input that does not fit is a 400. */
export function createRouter(): OpenAPIHono<HttpEnv> {
  return new OpenAPIHono<HttpEnv>({
    defaultHook: (result) => {
      if (!result.success) throw invalidRequest(toIssues(result.error));
    },
  });
}

/** The `200` of a route that answers with JSON. */
export function jsonContent<Schema>(schema: Schema) {
  return { 'application/json': { schema } };
}

export const bearer = [{ bearer: [] }];
