import { createRoute, z } from '@hono/zod-openapi';
import { ApiError } from '../../../contract/errors.ts';
import { bearer } from '../../../http/api/create-app.ts';
import { auditRouteOf } from '../../../operators/http/audit-route.ts';
import { createOperatorRouter, limitSchema } from '../../../operators/http/router.ts';
import { listAudit } from '../../../operators/views/audit.ts';
import { listOperatorKeys, operatorKeyListSchema } from '../../../operators/views/keys.ts';
import { flagSchema } from '../../contract/values.ts';
import { findTeam } from '../../model/own-rows.ts';
import { billSchema, booksSchema, explainBillOf, readBooks } from '../../operate/views/books.ts';
import {
  deploymentDetailSchema,
  deploymentPageSchema,
  listDeployments,
  readDeployment,
  statusFilterSchema,
} from '../../operate/views/deployments.ts';
import { listMails, mailPageSchema, mailStateSchema } from '../../operate/views/mails.ts';
import { isAfter } from '../../operate/views/pages.ts';
import { listProviders, providerListSchema } from '../../operate/views/providers.ts';
import { readStatus, statusViewSchema } from '../../operate/views/status.ts';
import { listTeams, readTeam, teamDetailSchema, teamPageSchema } from '../../operate/views/teams.ts';
import { errors, type OperatorDeps } from './deps.ts';

const shared = { tags: ['Views'], security: bearer };
const afterSchema = z.string().refine(isAfter, 'expected the `next` of a page').optional();
const textSchema = z.string().max(200).optional();

const statusRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/status',
  operationId: 'getStatus',
  summary: 'Summary figures',
  description: 'Deployments, teams and their spend, mails, held losses, and the last check of the books.',
  responses: errors.replies(200, 'The figures.', statusViewSchema, ['unauthorized']),
});

const providersRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/providers',
  operationId: 'listProviders',
  summary: 'Providers with their health, age of their data, and recent failures',
  description:
    'Configured providers first, then others that still have deployments or volumes. Problems are those seen by this server.',
  responses: errors.replies(200, 'The providers.', providerListSchema, ['unauthorized']),
});

const deploymentsRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/deployments',
  operationId: 'findDeployments',
  summary: 'Deployments of all teams, page by page',
  description:
    'Newest first. `q` searches id, name, the names at the provider, address and failure. Without a status: deployments that have not ended.',
  request: {
    query: z.object({
      team: z.string().optional().meta({ description: 'The slug or the id of a team.' }),
      provider: z.string().optional(),
      status: statusFilterSchema.optional(),
      q: textSchema,
      after: afterSchema,
      limit: limitSchema,
    }),
  },
  responses: errors.replies(200, 'A page of them.', deploymentPageSchema, ['unauthorized', 'not_found']),
});

const deploymentRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/deployments/{deploymentId}',
  operationId: 'showDeployment',
  summary: 'One deployment with all its details',
  description: 'Ended deployments are included.',
  request: { params: z.object({ deploymentId: z.string() }) },
  responses: errors.replies(200, 'The deployment.', deploymentDetailSchema, ['unauthorized', 'not_found']),
});

const teamsRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/teams',
  operationId: 'listTeams',
  summary: 'Teams with their balance and hourly cost',
  description:
    'Sorted by slug, in pages; `spending=true`: teams that are billed now, first to run out first, on one page.',
  request: {
    query: z.object({
      q: textSchema,
      spending: flagSchema,
      after: z.string().max(255).optional(),
      limit: limitSchema,
    }),
  },
  responses: errors.replies(200, 'A page of them.', teamPageSchema, ['unauthorized']),
});

const teamRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/teams/{team}',
  operationId: 'showTeam',
  summary: 'One team: its members, billed resources and latest bookings',
  description: 'By its slug or its id.',
  request: { params: z.object({ team: z.string() }) },
  responses: errors.replies(200, 'The team.', teamDetailSchema, ['unauthorized', 'not_found']),
});

const mailsRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/mails',
  operationId: 'listMails',
  summary: 'The outbox: waiting, sent and given-up mails',
  description: 'Newest first, in pages, without their texts.',
  request: {
    query: z.object({
      to: z.string().max(320).optional(),
      state: mailStateSchema.optional(),
      after: afterSchema,
      limit: limitSchema,
    }),
  },
  responses: errors.replies(200, 'A page of them.', mailPageSchema, ['unauthorized']),
});

const booksRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/books',
  operationId: 'readBooks',
  summary: 'Result of the last check of the books, and bookings other than usage',
  description:
    '`berth marketplace verify-ledger` checks them in a separate process. Payments, grants and corrections, newest first.',
  request: { query: z.object({ after: afterSchema, limit: limitSchema }) },
  responses: errors.replies(200, 'The books.', booksSchema, ['unauthorized']),
});

const billRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/bills/{subjectId}',
  operationId: 'explainBill',
  summary: 'Bill of a deployment or volume, rate by rate',
  description: 'Same content as `berth marketplace explain-bill`, with the cost at the provider.',
  request: { params: z.object({ subjectId: z.string() }), query: z.object({ by_day: flagSchema }) },
  responses: errors.replies(200, 'The bill.', billSchema, ['unauthorized', 'not_found']),
});

const auditRoute = auditRouteOf(errors);

const operatorKeysRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/operator-keys',
  operationId: 'listOperatorKeys',
  summary: 'Keys of operators',
  description: 'Create and revoke them on the command line: `berth marketplace operators`.',
  responses: errors.replies(200, 'The keys.', operatorKeyListSchema, ['unauthorized']),
});

/** The operator's views. */
export function viewRoutes({
  store: { read },
  clock,
  providers,
  maxLosses,
}: Pick<OperatorDeps, 'store' | 'clock' | 'providers' | 'maxLosses'>) {
  return createOperatorRouter()
    .openapi(statusRoute, async (context) =>
      context.json(await readStatus(read, await read.teams.spending(), clock.now()), 200),
    )
    .openapi(providersRoute, async (context) => {
      const seen = { known: providers(), maxLosses, now: clock.now() };
      return context.json({ providers: await listProviders(read, seen) }, 200);
    })
    .openapi(deploymentsRoute, async (context) => {
      const { team, provider, q, ...query } = context.req.valid('query');
      const teamId = team === undefined ? undefined : (await findTeam(read.teams, team)).id;
      const of = { ...query, teamId, providerId: provider, text: q };
      return context.json(await listDeployments(read, of), 200);
    })
    .openapi(deploymentRoute, async (context) => {
      const { deploymentId } = context.req.valid('param');
      return context.json(known(await readDeployment(read, deploymentId, clock.now()), 'deployment'), 200);
    })
    .openapi(teamsRoute, async (context) => {
      const { q, spending, ...query } = context.req.valid('query');
      return context.json(
        await listTeams(read, { ...query, text: q, isSpending: spending }, clock.now()),
        200,
      );
    })
    .openapi(teamRoute, async (context) => {
      const { team } = context.req.valid('param');
      return context.json(known(await readTeam(read, team, clock.now()), 'team'), 200);
    })
    .openapi(mailsRoute, async (context) =>
      context.json(await listMails(read, context.req.valid('query')), 200),
    )
    .openapi(booksRoute, async (context) =>
      context.json(await readBooks(read, context.req.valid('query')), 200),
    )
    .openapi(billRoute, async (context) => {
      const { subjectId } = context.req.valid('param');
      const { by_day: byDay = false } = context.req.valid('query');
      const bill = await explainBillOf(read, subjectId, { byDay, now: clock.now() });
      return context.json(known(bill, 'deployment or volume'), 200);
    })
    .openapi(auditRoute, async (context) =>
      context.json(await listAudit(read, context.req.valid('query')), 200),
    )
    .openapi(operatorKeysRoute, async (context) => context.json({ keys: await listOperatorKeys(read) }, 200));
}

/** @throws {ApiError} `not_found` */
function known<T>(found: T | null, what: string): T {
  if (found === null) throw new ApiError('not_found', `There is no such ${what}.`);
  return found;
}
