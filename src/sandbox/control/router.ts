import type { OpenAPIHono } from '@hono/zod-openapi';
import { invalidRequest } from '../../contract/errors.ts';
import { toIssues } from '../../contract/issue-words.ts';
import { newRouter } from '../../http/api/create-app.ts';
import type { RequestEnv } from '../../http/api/request-context.ts';

/** Creates a router that answers invalid input with a 400 that names each path, like the providers. */
export function createRouter(): OpenAPIHono<RequestEnv> {
  return newRouter<RequestEnv>((failed) => invalidRequest(toIssues(failed)));
}
