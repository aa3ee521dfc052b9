import { createRoute, z } from '@hono/zod-openapi';
import { bearer, jsonContent } from '../../../http/api/create-app.ts';
import { auditRouteOf } from '../../../operators/http/audit-route.ts';
import { actorOf, createOperatorRouter, limitSchema } from '../../../operators/http/router.ts';
import { listAudit } from '../../../operators/views/audit.ts';
import { USUAL_PAGE } from '../../../operators/views/values.ts';
import { alarmKinds } from '../../model/alarm.ts';
import { acknowledgeAlarms } from '../../operate/acknowledge.ts';
import { doctorReportSchema } from '../../operate/doctor.ts';
import {
  alarmListSchema,
  listAlarms,
  listOrphans,
  orphanListSchema,
  toAlarmRow,
} from '../../operate/views/alarms.ts';
import { capacitySchema, readCapacity } from '../../operate/views/capacity.ts';
import { listPlatforms, platformListSchema } from '../../operate/views/platforms.ts';
import { readStatus, statusViewSchema } from '../../operate/views/status.ts';
import { listWork, workListSchema } from '../../operate/views/work.ts';
import { errors } from '../errors.ts';
import type { OperatorDeps } from './deps.ts';

const shared = { tags: ['Views'], security: bearer };

const statusRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/status',
  operationId: 'getStatus',
  summary: 'Overall state and open alarms',
  description: 'As `berth status` shows it.',
  responses: errors.replies(200, 'The state of the whole installation.', statusViewSchema, ['unauthorized']),
});

const platformsRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/platforms',
  operationId: 'listPlatforms',
  summary: 'Platforms with their health, inventory and hosts',
  description: 'Configured platforms, then others that still have instances.',
  responses: errors.replies(200, 'The platforms.', platformListSchema, ['unauthorized']),
});

const capacityRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/capacity',
  operationId: 'getCapacity',
  summary: 'Units of each offer and region, and why none are available',
  description: 'As this server sells them: from the catalog, the claims and the counts of the platforms.',
  responses: errors.replies(200, 'The capacity.', capacitySchema, ['unauthorized']),
});

const workRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/work',
  operationId: 'listWork',
  summary: 'Unfinished steps of work',
  description: 'Longest waiting first.',
  request: { query: z.object({ limit: limitSchema }) },
  responses: errors.replies(200, 'The steps.', workListSchema, ['unauthorized']),
});

const alarmsRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/alarms',
  operationId: 'listAlarms',
  summary: 'Open alarms',
  description: 'Oldest first, from every server on the database.',
  responses: errors.replies(200, 'The alarms.', alarmListSchema, ['unauthorized']),
});

const acknowledgeRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/alarms/acknowledge',
  operationId: 'acknowledgeAlarms',
  summary: 'Acknowledge an alarm',
  description: 'Without a subject: all alarms of that kind. An alarm ends with its cause.',
  request: {
    body: {
      required: true,
      content: jsonContent(z.object({ kind: z.enum(alarmKinds), subject: z.string().optional() }), {
        kind: 'platform_down',
        subject: 'default',
      }),
    },
  },
  responses: errors.replies(200, 'The acknowledged alarms.', alarmListSchema, [
    'unauthorized',
    'not_found',
    ...errors.ofBodies,
  ]),
});

const orphansRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/orphans',
  operationId: 'listOrphans',
  summary: 'Machines and volumes without a row, and rows that were lost',
  description: 'Each has an open alarm as long as the platform shows it.',
  responses: errors.replies(200, 'The orphans.', orphanListSchema, ['unauthorized']),
});

const doctorRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/doctor',
  operationId: 'getDoctorReport',
  summary: 'Findings of the last check by this server',
  description: 'The same checks as `berth doctor`: database, clock, TLS, drivers, and rows against machines.',
  responses: errors.replies(200, 'The findings.', doctorReportSchema, ['unauthorized']),
});

const lookRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/doctor',
  operationId: 'runDoctor',
  summary: 'Check everything that this server needs',
  description:
    'Changes nothing. A long check is answered before it ends: `ended_at` is then null, and GET returns the rest.',
  responses: errors.replies(200, 'The findings so far.', doctorReportSchema, ['unauthorized']),
});

const auditRoute = auditRouteOf(errors);

/** The routes for an operator's view of the whole installation. */
export function viewRoutes({
  store,
  clock,
  platforms,
  catalog,
  sale,
  doctor,
}: Pick<OperatorDeps, 'doctor' | 'store' | 'clock' | 'platforms' | 'catalog' | 'sale'>) {
  const { read } = store;
  return createOperatorRouter()
    .openapi(statusRoute, async (context) => context.json(await readStatus(read, platforms.keys()), 200))
    .openapi(platformsRoute, async (context) =>
      context.json({ platforms: await listPlatforms(read, platforms) }, 200),
    )
    .openapi(capacityRoute, async (context) =>
      context.json(await readCapacity(read, { catalog, sale, now: clock.now() }), 200),
    )
    .openapi(workRoute, async (context) => {
      const { limit = USUAL_PAGE } = context.req.valid('query');
      return context.json(await listWork(read, clock.now(), limit), 200);
    })
    .openapi(alarmsRoute, async (context) => context.json({ alarms: await listAlarms(read) }, 200))
    .openapi(acknowledgeRoute, async (context) => {
      const { kind, subject } = context.req.valid('json');
      const of = { kind, ...(subject !== undefined && { subject }) };
      const acknowledged = await acknowledgeAlarms({ store, clock }, actorOf(context), of);
      return context.json({ alarms: acknowledged.map(toAlarmRow) }, 200);
    })
    .openapi(orphansRoute, async (context) => context.json({ orphans: await listOrphans(read) }, 200))
    .openapi(doctorRoute, async (context) => context.json(doctor.report(), 200))
    .openapi(lookRoute, async (context) => context.json(await doctor.look(), 200))
    .openapi(auditRoute, async (context) =>
      context.json(await listAudit(read, context.req.valid('query')), 200),
    );
}
