import { z } from '@hono/zod-openapi';
import { deploymentSchema, rebootStatusSchema, stopQuoteSchema } from '../../contract/deployment.ts';
import {
  pauseDeployment,
  quotePause,
  readRebootStatus,
  restartDeployment,
  resumeDeployment,
} from '../../deployments/lifecycle.ts';
import type { HttpDeps } from '../deps.ts';
import { ofTeams } from '../errors.ts';
import { Routes } from '../route.ts';

const oneDeployment = { deploymentId: z.string() };

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

/** M: Lifecycle rules. */
export function lifecycleRoutes(deps: HttpDeps) {
  return new Routes('Lifecycle')
    .add('get', '/api/deployments/{deploymentId}/pause-quote', {
      params: oneDeployment,
      operationId: 'quotePause',
      summary: 'Price of a deployment while it is stopped',
      description: 'The stopped rate with its components, and the current rate. Nothing is changed.',
      reply: ['The quote.', stopQuoteSchema, failures],
      run: ({ caller, params }) => quotePause(deps, caller, params.deploymentId),
    })
    .add('post', '/api/deployments/{deploymentId}/pause', {
      params: oneDeployment,
      operationId: 'pauseDeployment',
      summary: 'Stop a deployment',
      description:
        'The GPU is released, the disk is kept, and the deployment is billed at `stoppedHourlyRate`. 504: the request went through; poll the deployment.',
      reply: ['It is stopped.', deploymentSchema, failures],
      run: ({ caller, params }) => pauseDeployment(deps, caller, params.deploymentId),
    })
    .add('post', '/api/deployments/{deploymentId}/resume', {
      params: oneDeployment,
      operationId: 'resumeDeployment',
      summary: 'Start a stopped deployment',
      description:
        'Disk and address stay the same. 503: no hardware is free now; the disk is intact and the deployment stays stopped. 504: the provider accepted the start, and the machine does not run yet. If the provider finds no room, the deployment stays stopped, and changes are 409 until the start is given up after a quarter of an hour.',
      reply: ['It runs.', deploymentSchema, failures],
      run: ({ caller, params }) => resumeDeployment(deps, caller, params.deploymentId),
    })
    .add('post', '/api/deployments/{deploymentId}/restart', {
      params: oneDeployment,
      operationId: 'restartDeployment',
      summary: 'Restart a running deployment',
      description:
        'A hard reboot: memory is lost, billing continues and the status does not change. `reboot-status` shows when it has finished.',
      reply: ['The restart has begun.', deploymentSchema, failures],
      run: ({ caller, params }) => restartDeployment(deps, caller, params.deploymentId),
    })
    .add('get', '/api/deployments/{deploymentId}/reboot-status', {
      params: oneDeployment,
      operationId: 'getRebootStatus',
      summary: 'Whether a restart is in flight',
      description:
        '`restarting`, with its start time, from the acceptance of a restart until it has finished.',
      reply: ['The status.', rebootStatusSchema, failures],
      run: ({ caller, params }) => readRebootStatus(deps, caller, params.deploymentId),
    });
}
