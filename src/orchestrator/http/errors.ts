import type { OpenAPIHono } from '@hono/zod-openapi';
import { invalidRequest } from '../../contract/errors.ts';
import { toIssues } from '../../contract/issue-words.ts';
import { newRouter } from '../../http/api/create-app.ts';
import { envelopeErrors } from '../../operator-kit/http/errors.ts';
import type { HttpEnv } from './deps.ts';

/** O: Errors: the envelope of every error, with the status of its code. */
export const errors = envelopeErrors({ server: 'orchestrator', store: 'store' });

/** The envelope for errors below HTTP. */
export const refuseWire = errors.refuseWire.bind(errors);

/** A router that answers invalid input with a 400 that names each path. */
export function createRouter(): OpenAPIHono<HttpEnv> {
  return newRouter<HttpEnv>((failed) => invalidRequest(toIssues(failed)));
}
