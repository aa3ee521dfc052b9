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
  summary: 'What there is and what stands wrong',
  description: 'As `berth status` shows it.',
  responses: errors.replies(200, 'The state of the whole installation.', statusViewSchema, ['unauthorized']),
});

const platformsRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/platforms',
  operationId: 'listPlatforms',
  summary: 'Platforms with their health, what they count, and their hosts',
  description: 'Those that are configured, then others that have instances.',
  responses: errors.replies(200, 'The platforms.', platformListSchema, ['unauthorized']),
});

const capacityRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/capacity',
  operationId: 'getCapacity',
  summary: 'Units of each offer and region, and why none can be had',
  description:
    'As this server sells them: by the catalog, the claims, and what the platforms count themselves.',
  responses: errors.replies(200, 'What there is.', capacitySchema, ['unauthorized']),
});

const workRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/work',
  operationId: 'listWork',
  summary: 'Steps that are not finished',
  description: 'Those that have waited longest first.',
  request: { query: z.object({ limit: limitSchema }) },
  responses: errors.replies(200, 'The steps.', workListSchema, ['unauthorized']),
});

const alarmsRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/alarms',
  operationId: 'listAlarms',
  summary: 'Alarms that stand',
  description: 'The oldest first, as every server that uses the database sees them.',
  responses: errors.replies(200, 'The alarms.', alarmListSchema, ['unauthorized']),
});

const acknowledgeRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/alarms/acknowledge',
  operationId: 'acknowledgeAlarms',
  summary: 'Say that somebody is at an alarm',
  description: 'Without a subject, at all of that kind. An alarm ends when its cause does.',
  request: {
    body: {
      required: true,
      content: jsonContent(z.object({ kind: z.enum(alarmKinds), subject: z.string().optional() }), {
        kind: 'platform_down',
        subject: 'default',
      }),
    },
  },
  responses: errors.replies(200, 'Those that are acknowledged now.', alarmListSchema, [
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
  description: 'Each stands as an alarm for as long as the platform shows it.',
  responses: errors.replies(200, 'The orphans.', orphanListSchema, ['unauthorized']),
});

const doctorRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/doctor',
  operationId: 'getDoctorReport',
  summary: 'What this server found when it looked last',
  description: 'As `berth doctor` finds it: database, clock, TLS, drivers, and rows against machines.',
  responses: errors.replies(200, 'The findings.', doctorReportSchema, ['unauthorized']),
});

const lookRoute = createRoute({
  ...shared,
  method: 'post',
  path: '/doctor',
  operationId: 'runDoctor',
  summary: 'Look now at all that this server needs',
  description:
    'Changes nothing. What takes long is answered before its end: `ended_at` is null, and GET has the rest.',
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
