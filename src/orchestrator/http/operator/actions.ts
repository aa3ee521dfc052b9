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
  platform: z.string().optional().meta({ description: 'The platform it applies to, if there are several.' }),
});
const cordonBody = subjectSchema.extend({
  until: timestampSchema.optional().meta({ description: 'Absent: until removed.' }),
  reason: z.string().max(500).optional(),
});
type CordonBody = z.infer<typeof cordonBody>;
const anExample = { kind: 'region', name: 'eu-frankfurt', reason: 'new switches' } as const;

const cordonsRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/cordons',
  operationId: 'listCordons',
  summary: 'Cordons and planned maintenance',
  description: 'Ordered by start time.',
  responses: errors.replies(200, 'The cordons.', cordonListSchema, ['unauthorized']),
});

const cordonRoute = createRoute({
  ...shared,
  path: '/cordons',
  operationId: 'cordon',
  summary: 'Cordon: place nothing new there',
  description: 'Running instances are not affected. An existing cordon gets the new end and reason.',
  request: { body: { required: true, content: jsonContent(cordonBody, anExample) } },
  responses: errors.replies(200, 'The cordon.', cordonRowSchema, refusals),
});

const uncordonRoute = createRoute({
  ...shared,
  path: '/cordons/remove',
  operationId: 'uncordon',
  summary: 'Remove a cordon',
  description: 'Maintenance in force on the same subject ends too.',
  request: {
    body: {
      required: true,
      content: jsonContent(subjectSchema, { kind: anExample.kind, name: anExample.name }),
    },
  },
  responses: errors.replies(200, 'The removed cordons.', cordonListSchema, refusals),
});

const drainRoute = createRoute({
  ...shared,
  path: '/drain',
  operationId: 'drain',
  summary: 'Cordon, and list the machines left there',
  description: 'Nothing is stopped. Repeat the request to see the progress.',
  request: { body: { required: true, content: jsonContent(cordonBody, anExample) } },
  responses: errors.replies(200, 'The machines left.', drainedSchema, refusals),
});

const maintenanceRoute = createRoute({
  ...shared,
  path: '/maintenance',
  operationId: 'planMaintenance',
  summary: 'Announce maintenance in the catalog',
  description: 'Clients see it and its reason at once; during the window nothing new is placed there.',
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
  summary: 'End or cancel maintenance',
  description: 'The offers that it withheld are sold again.',
  request: { params: z.object({ maintenanceId: z.string() }) },
  responses: errors.replies(200, 'The window that ended.', cordonRowSchema, ['unauthorized', 'not_found']),
});

const reloadRoute = createRoute({
  ...shared,
  path: '/reload',
  operationId: 'reload',
  summary: 'Reload the catalog',
  description:
    'On this server now, on the others within seconds. A catalog with an error is refused as a whole.',
  responses: errors.replies(200, 'What changed.', reloadedSchema, ['unauthorized']),
});

const dryRun = z
  .boolean()
  .default(true)
  .meta({ description: 'False: carry it out. True: only show the effect.' });
const params = z.object({ instanceId: z.string() });

const retryRoute = createRoute({
  ...shared,
  path: '/instances/{instanceId}/retry',
  operationId: 'retryInstance',
  summary: 'Retry its open step now',
  description: 'If no step is open, its machine is read again.',
  request: {
    params,
    body: { required: true, content: jsonContent(z.object({ dry_run: dryRun }), { dry_run: false }) },
  },
  responses: errors.replies(200, 'The effect.', planSchema, refusals),
});

const releaseRoute = createRoute({
  ...shared,
  path: '/instances/{instanceId}/release',
  operationId: 'releaseInstance',
  summary: 'Remove the machine of a failed instance, with its disks',
  description:
    'Only while its open work is `hold`: until its DELETE, or until `kept_until` where that is not null.',
  request: {
    params,
    body: { required: true, content: jsonContent(z.object({ dry_run: dryRun }), { dry_run: false }) },
  },
  responses: errors.replies(200, 'The effect.', planSchema, refusals),
});

const destroyRoute = createRoute({
  ...shared,
  path: '/instances/{instanceId}/destroy',
  operationId: 'destroyInstance',
  summary: 'Delete an instance of any account',
  description: 'It becomes DESTROYED only when the platform shows that its machine is gone.',
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
  responses: errors.replies(200, 'The effect.', planSchema, refusals),
});

const orphanRoute = createRoute({
  ...shared,
  path: '/orphans/{ref}/{action}',
  operationId: 'decideOrphan',
  summary: 'Resolve an orphan: a machine without a live instance, or a volume without a row',
  description:
    '`adopt`: a server makes it a new instance of its account, from the note on the machine. `release`: a server removes our tag from it, and it is yours. `destroy`: it is removed with its disks; a volume can only be destroyed. A second, different decision is refused until the first has ended. The audit log has how it ended.',
  request: {
    params: z.object({ ref: z.string(), action: z.enum(orphanActions) }),
    body: { required: true, content: jsonContent(z.object({ dry_run: dryRun }), { dry_run: false }) },
  },
  responses: errors.replies(200, 'The effect.', orphanPlanSchema, refusals),
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
