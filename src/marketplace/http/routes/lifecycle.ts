import { createRoute, z } from '@hono/zod-openapi';
import { bearer } from '../../../http/api/create-app.ts';
import { deploymentSchema, rebootStatusSchema, stopQuoteSchema } from '../../contract/deployment.ts';
import {
  pauseDeployment,
  quotePause,
  readRebootStatus,
  restartDeployment,
  resumeDeployment,
} from '../../deployments/lifecycle.ts';
import type { HttpDeps } from '../deps.ts';
import { createRouter, errors, ofTeams } from '../errors.ts';

/** M: "Lifecycle endpoints … use these statuses". */
const failures = [
  ...ofTeams,
  'ACTION_UNSUPPORTED',
  'INVALID_STATUS',
  'CHANGE_IN_PROGRESS',
  'PROVIDER_REFUSED',
  'OUT_OF_STOCK',
  'PROVIDER_SLOW',
] as const;
const shared = {
  tags: ['Lifecycle'],
  security: bearer,
  request: { params: z.object({ deploymentId: z.string() }) },
};

const quoteRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/api/deployments/{deploymentId}/pause-quote',
  operationId: 'quotePause',
  summary: 'Price of a deployment while it is stopped',
  description: 'The stopped rate with its components, and the current rate. Nothing is changed.',
  responses: errors.replies(200, 'The quote.', stopQuoteSchema, failures),
});

const pauseRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/api/deployments/{deploymentId}/pause',
  operationId: 'pauseDeployment',
  summary: 'Stop a deployment',
  description:
    'The GPU is released, the disk is kept, and the deployment is billed at `stoppedHourlyRate`. 504: the request went through; poll the deployment.',
  responses: errors.replies(200, 'It is stopped.', deploymentSchema, failures),
});

const resumeRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/api/deployments/{deploymentId}/resume',
  operationId: 'resumeDeployment',
  summary: 'Start a stopped deployment',
  description:
    'Disk and address stay the same. 503: no hardware is free now; the disk is intact and the deployment stays stopped. 504: the provider accepted the start, and the machine does not run yet. If the provider finds no room, the deployment stays stopped, and changes are 409 until the start is given up after a quarter of an hour.',
  responses: errors.replies(200, 'It runs.', deploymentSchema, failures),
});

const restartRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/api/deployments/{deploymentId}/restart',
  operationId: 'restartDeployment',
  summary: 'Restart a running deployment',
  description:
    'A hard reboot: memory is lost, billing continues and the status does not change. `reboot-status` shows when it has finished.',
  responses: errors.replies(200, 'The restart has begun.', deploymentSchema, failures),
});

const rebootStatusRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/api/deployments/{deploymentId}/reboot-status',
  operationId: 'getRebootStatus',
  summary: 'Whether a restart is in flight',
  description: '`restarting`, with its start time, from the acceptance of a restart until it has finished.',
  responses: errors.replies(200, 'The status.', rebootStatusSchema, failures),
});

/** M: Lifecycle rules. */
export function lifecycleRoutes(deps: HttpDeps) {
  return createRouter()
    .openapi(quoteRoute, async (context) => {
      const { deploymentId } = context.req.valid('param');
      return context.json(await quotePause(deps, context.get('caller'), deploymentId), 200);
    })
    .openapi(pauseRoute, async (context) => {
      const { deploymentId } = context.req.valid('param');
      return context.json(await pauseDeployment(deps, context.get('caller'), deploymentId), 200);
    })
    .openapi(resumeRoute, async (context) => {
      const { deploymentId } = context.req.valid('param');
      return context.json(await resumeDeployment(deps, context.get('caller'), deploymentId), 200);
    })
    .openapi(restartRoute, async (context) => {
      const { deploymentId } = context.req.valid('param');
      return context.json(await restartDeployment(deps, context.get('caller'), deploymentId), 200);
    })
    .openapi(rebootStatusRoute, async (context) => {
      const { deploymentId } = context.req.valid('param');
      return context.json(await readRebootStatus(deps, context.get('caller'), deploymentId), 200);
    });
}
