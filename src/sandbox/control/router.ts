import type { OpenAPIHono } from '@hono/zod-openapi';
import { invalidRequest } from '../../contract/errors.ts';
import { toIssues } from '../../contract/issue-words.ts';
import { newRouter } from '../../http/api/create-app.ts';
import type { RequestEnv } from '../../http/api/request-context.ts';

/** Input that does not fit is a 400 that names each path, as the providers' are. */
export function createRouter(): OpenAPIHono<RequestEnv> {
  return newRouter<RequestEnv>((failed) => invalidRequest(toIssues(failed)));
}
