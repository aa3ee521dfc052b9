import { createRoute, z } from '@hono/zod-openapi';
import { timestampSchema } from '../../../contract/values.ts';
import { bearer, jsonContent } from '../../../http/api/create-app.ts';
import { actorOf, createOperatorRouter } from '../../../operators/http/router.ts';
import { cordonKinds } from '../../model/cordon.ts';
import {
  type CordonRequest,
  cancelMaintenance,
  cordon,
  planMaintenance,
  uncordon,
} from '../../operate/actions/cordons.ts';
import { drain } from '../../operate/actions/drain.ts';
import { forceDestroyInstance, releaseInstance, retryInstance } from '../../operate/actions/instances.ts';
import { decideOrphan, orphanActions } from '../../operate/actions/orphans.ts';
import {
  cordonListSchema,
  cordonRowSchema,
  drainedSchema,
  listCordons,
  orphanPlanSchema,
  planSchema,
  reloadedSchema,
  toCordonRow,
  toDrainedRow,
  toPlanRow,
  toReloadedRow,
} from '../../operate/views/actions.ts';
import { errors } from '../errors.ts';
import type { OperatorDeps } from './deps.ts';

const shared = { tags: ['Actions'], security: bearer, method: 'post' as const };
const refusals = ['unauthorized', 'not_found', 'invalid_state', ...errors.ofBodies] as const;

const subjectSchema = z.object({
  kind: z.enum(cordonKinds),
  name: z.string().min(1),
  platform: z.string().optional().meta({ description: 'Of several platforms, the one that it is about.' }),
});
const cordonBody = subjectSchema.extend({
  until: timestampSchema.optional().meta({ description: 'Absent: until it is removed.' }),
  reason: z.string().max(500).optional(),
});
type CordonBody = z.infer<typeof cordonBody>;
const anExample = { kind: 'region', name: 'eu-frankfurt', reason: 'new switches' } as const;

const cordonsRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/cordons',
  operationId: 'listCordons',
  summary: 'What is cordoned, and the maintenance that is planned',
  description: 'The first to begin first.',
  responses: errors.replies(200, 'The cordons.', cordonListSchema, ['unauthorized']),
});

const cordonRoute = createRoute({
  ...shared,
  path: '/cordons',
  operationId: 'cordon',
  summary: 'Place nothing new there',
  description:
    'What runs goes on. A cordon that is there already gets the end and the reason that are given.',
  request: { body: { required: true, content: jsonContent(cordonBody, anExample) } },
  responses: errors.replies(200, 'The cordon.', cordonRowSchema, refusals),
});

const uncordonRoute = createRoute({
  ...shared,
  path: '/cordons/remove',
  operationId: 'uncordon',
  summary: 'Sell there again',
  description: 'Maintenance that stands on the same subject ends too.',
  request: {
    body: {
      required: true,
      content: jsonContent(subjectSchema, { kind: anExample.kind, name: anExample.name }),
    },
  },
  responses: errors.replies(200, 'Those that are removed.', cordonListSchema, refusals),
});

const drainRoute = createRoute({
  ...shared,
  path: '/drain',
  operationId: 'drain',
  summary: 'Cordon, and tell which machines are left there',
  description: 'Nothing is stopped: asked again, it tells how far it is.',
  request: { body: { required: true, content: jsonContent(cordonBody, anExample) } },
  responses: errors.replies(200, 'What is left.', drainedSchema, refusals),
});

const maintenanceRoute = createRoute({
  ...shared,
  path: '/maintenance',
  operationId: 'planMaintenance',
  summary: 'Announce maintenance in the catalog',
  description: 'Clients see it with its reason at once; in that time nothing new is placed there.',
  request: {
    body: {
      required: true,
      content: jsonContent(
        cordonBody.extend({ from: timestampSchema.optional().meta({ description: 'Absent: now.' }) }),
        { ...anExample, from: '2030-01-31T22:00:00Z', until: '2030-02-01T02:00:00Z' },
      ),
    },
  },
  responses: errors.replies(200, 'The window.', cordonRowSchema, refusals),
});

const cancelRoute = createRoute({
  ...shared,
  path: '/maintenance/{maintenanceId}/cancel',
  operationId: 'cancelMaintenance',
  summary: 'End maintenance, or take it back',
  description: 'What it kept from being sold is sold again.',
  request: { params: z.object({ maintenanceId: z.string() }) },
  responses: errors.replies(200, 'The window that ended.', cordonRowSchema, ['unauthorized', 'not_found']),
});

const reloadRoute = createRoute({
  ...shared,
  path: '/reload',
  operationId: 'reload',
  summary: 'Read the catalog anew',
  description: 'On this server now, on the others within seconds. One that is wrong is refused whole.',
  responses: errors.replies(200, 'What changed.', reloadedSchema, ['unauthorized']),
});

const dryRun = z
  .boolean()
  .default(true)
  .meta({ description: 'False: do it, and not only say what it does.' });
const params = z.object({ instanceId: z.string() });

const retryRoute = createRoute({
  ...shared,
  path: '/instances/{instanceId}/retry',
  operationId: 'retryInstance',
  summary: 'Try its open step again now',
  description: 'Where none is open, its machine is read again.',
  request: {
    params,
    body: { required: true, content: jsonContent(z.object({ dry_run: dryRun }), { dry_run: false }) },
  },
  responses: errors.replies(200, 'What is done.', planSchema, refusals),
});

const releaseRoute = createRoute({
  ...shared,
  path: '/instances/{instanceId}/release',
  operationId: 'releaseInstance',
  summary: 'Remove the machine of an instance that failed, with its disks',
  description:
    'Only while its open work is `hold`: until its DELETE, or until `kept_until` where that is not null.',
  request: {
    params,
    body: { required: true, content: jsonContent(z.object({ dry_run: dryRun }), { dry_run: false }) },
  },
  responses: errors.replies(200, 'What is done.', planSchema, refusals),
});

const destroyRoute = createRoute({
  ...shared,
  path: '/instances/{instanceId}/destroy',
  operationId: 'destroyInstance',
  summary: 'Delete an instance of any account',
  description: 'It is DESTROYED only when the platform has shown that its machine is gone.',
  request: {
    params,
    body: {
      required: true,
      content: jsonContent(z.object({ dry_run: dryRun, reason: z.string().max(500).optional() }), {
        dry_run: false,
        reason: 'abuse',
      }),
    },
  },
  responses: errors.replies(200, 'What is done.', planSchema, refusals),
});

const orphanRoute = createRoute({
  ...shared,
  path: '/orphans/{ref}/{action}',
  operationId: 'decideOrphan',
  summary: 'Decide about a machine that no live instance has, or a volume without a row',
  description:
    '`adopt`: a server makes it a new instance of its account, from the note that it was made with. `release`: a server takes our mark off it, and it is yours. `destroy`: it is removed with its disks; a volume can only be destroyed. A second, different decision is refused until the first has ended. The audit log has how it ended.',
  request: {
    params: z.object({ ref: z.string(), action: z.enum(orphanActions) }),
    body: { required: true, content: jsonContent(z.object({ dry_run: dryRun }), { dry_run: false }) },
  },
  responses: errors.replies(200, 'What is done.', orphanPlanSchema, refusals),
});

/** The routes for an operator's actions. */
export function actionRoutes(deps: OperatorDeps) {
  const { store, clock, reload } = deps;
  return createOperatorRouter()
    .openapi(cordonsRoute, async (context) =>
      context.json({ cordons: await listCordons(store.read, clock.now()) }, 200),
    )
    .openapi(cordonRoute, async (context) => {
      const set = await cordon(deps, actorOf(context), toRequest(context.req.valid('json')));
      return context.json(toCordonRow(set, clock.now()), 200);
    })
    .openapi(uncordonRoute, async (context) => {
      const removed = await uncordon(deps, actorOf(context), context.req.valid('json'));
      return context.json({ cordons: removed.map((one) => toCordonRow(one, clock.now())) }, 200);
    })
    .openapi(drainRoute, async (context) => {
      const drained = await drain(deps, actorOf(context), toRequest(context.req.valid('json')));
      return context.json(toDrainedRow(drained, clock.now()), 200);
    })
    .openapi(maintenanceRoute, async (context) => {
      const { from, ...body } = context.req.valid('json');
      const request = { ...toRequest(body), since: from === undefined ? clock.now() : Date.parse(from) };
      const planned = await planMaintenance(deps, actorOf(context), request);
      return context.json(toCordonRow(planned, clock.now()), 200);
    })
    .openapi(cancelRoute, async (context) => {
      const { maintenanceId } = context.req.valid('param');
      const ended = await cancelMaintenance(deps, actorOf(context), maintenanceId);
      return context.json(toCordonRow(ended, clock.now()), 200);
    })
    .openapi(reloadRoute, async (context) => context.json(toReloadedRow(await reload(actorOf(context))), 200))
    .openapi(retryRoute, async (context) => {
      const { dry_run: isDry } = context.req.valid('json');
      const order = { id: context.req.valid('param').instanceId, isDone: !isDry };
      return context.json(toPlanRow(await retryInstance(deps, actorOf(context), order)), 200);
    })
    .openapi(releaseRoute, async (context) => {
      const { dry_run: isDry } = context.req.valid('json');
      const order = { id: context.req.valid('param').instanceId, isDone: !isDry };
      return context.json(toPlanRow(await releaseInstance(deps, actorOf(context), order)), 200);
    })
    .openapi(orphanRoute, async (context) => {
      const { dry_run: isDry } = context.req.valid('json');
      const order = { ...context.req.valid('param'), isDone: !isDry };
      const { isDone, ...plan } = await decideOrphan(deps, actorOf(context), order);
      return context.json({ ...plan, done: isDone }, 200);
    })
    .openapi(destroyRoute, async (context) => {
      const { dry_run: isDry, reason = null } = context.req.valid('json');
      const order = { id: context.req.valid('param').instanceId, isDone: !isDry, reason };
      return context.json(toPlanRow(await forceDestroyInstance(deps, actorOf(context), order)), 200);
    });
}

function toRequest({ until, reason, ...subject }: CordonBody): CordonRequest {
  return { subject, until: until === undefined ? null : Date.parse(until), reason: reason ?? null };
}
