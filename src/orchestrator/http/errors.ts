import type { OpenAPIHono } from '@hono/zod-openapi';
import { invalidRequest } from '../../contract/errors.ts';
import { toIssues } from '../../contract/issue-words.ts';
import { newRouter } from '../../http/api/create-app.ts';
import type { WireProblem, WireRefusal } from '../../http/wire/server.ts';
import { envelopeErrors } from '../../operators/http/errors.ts';
import type { HttpEnv } from './deps.ts';

/** O: Errors: the envelope for whatever goes wrong, with the status of the code. */
export const errors = envelopeErrors({ server: 'orchestrator', store: 'store' });

/** The envelope also for what is wrong below HTTP. */
export function refuseWire(problem: WireProblem): WireRefusal {
  return errors.refuseWire(problem);
}

/** Input that does not fit is a 400 that names each path. */
export function createRouter(): OpenAPIHono<HttpEnv> {
  return newRouter<HttpEnv>((failed) => invalidRequest(toIssues(failed)));
}
