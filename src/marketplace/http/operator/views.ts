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
  summary: 'What there is, in figures',
  description: 'Deployments, teams and what they burn, mails, held losses, and the last check of the books.',
  responses: errors.replies(200, 'The figures.', statusViewSchema, ['unauthorized']),
});

const providersRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/providers',
  operationId: 'listProviders',
  summary: 'Providers with their health, how old what is known of them is, and what failed there',
  description:
    'Those of the configuration, then others that rows name. Problems are those that this server met.',
  responses: errors.replies(200, 'The providers.', providerListSchema, ['unauthorized']),
});

const deploymentsRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/deployments',
  operationId: 'findDeployments',
  summary: 'Deployments of all teams, page by page',
  description:
    'The newest first. `q` is looked for in id, name, the names at the provider, address and failure. Without a status, those that are not over.',
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
  summary: 'All that is known of a deployment',
  description: 'Also of one that is over.',
  request: { params: z.object({ deploymentId: z.string() }) },
  responses: errors.replies(200, 'The deployment.', deploymentDetailSchema, ['unauthorized', 'not_found']),
});

const teamsRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/teams',
  operationId: 'listTeams',
  summary: 'Teams with what they have left and how fast it is used',
  description: 'By their slugs, page by page; `spending=true`: those that run out first, on one page.',
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
  summary: 'One team: its members, what it pays for, and the newest rows of its books',
  description: 'By its slug or its id.',
  request: { params: z.object({ team: z.string() }) },
  responses: errors.replies(200, 'The team.', teamDetailSchema, ['unauthorized', 'not_found']),
});

const mailsRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/mails',
  operationId: 'listMails',
  summary: 'The outbox: mails that wait, were sent, or were given up',
  description: 'The newest first, page by page, without their texts.',
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
  summary: 'Whether the books were right when they were last checked, and what was booked beside use',
  description:
    '`berth marketplace verify-ledger` checks them, in a process of its own. Payments, grants and corrections, the newest first.',
  request: { query: z.object({ after: afterSchema, limit: limitSchema }) },
  responses: errors.replies(200, 'The books.', booksSchema, ['unauthorized']),
});

const billRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/bills/{subjectId}',
  operationId: 'explainBill',
  summary: 'What was billed for a deployment or a volume, rate by rate',
  description: 'As `berth marketplace explain-bill` shows it, with what its provider asks.',
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
  description: 'They are made and revoked on the command line: `berth marketplace operators`.',
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
