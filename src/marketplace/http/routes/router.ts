import { OpenAPIHono } from '@hono/zod-openapi';
import { toIssues } from '../../../contract/issue-words.ts';
import { invalidRequest } from '../../contract/errors.ts';
import type { HttpEnv } from '../deps.ts';

/** A router whose routes are the single source of the OpenAPI document; input that does not fit is a 400. */
export function createRouter(): OpenAPIHono<HttpEnv> {
  return new OpenAPIHono<HttpEnv>({
    defaultHook: (result) => {
      if (!result.success) throw invalidRequest(toIssues(result));
    },
  });
}

/** A body of JSON, with an example of it where one helps. */
export function jsonContent<Schema>(schema: Schema, example?: object) {
  return { 'application/json': { schema, ...(example !== undefined && { example }) } };
}

export const bearer = [{ bearer: [] }];
