import { createRoute, z } from '@hono/zod-openapi';
import { bearer } from '../../../http/api/create-app.ts';
import { balanceSchema, teamSchema } from '../../contract/team.ts';
import { flagSchema } from '../../contract/values.ts';
import { listBalances, listTeams, teamDetails } from '../../teams/show-teams.ts';
import type { HttpDeps } from '../deps.ts';
import { createRouter, errors, ofTeams } from '../errors.ts';

const shared = { tags: ['Teams and balance'], security: bearer };

const balanceRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/api/balance',
  operationId: 'getBalance',
  summary: 'Balances of the teams',
  description: 'In USD, for each team of the caller; `all=false`: the current team only.',
  request: {
    query: z.object({
      teamId: z.string().optional(),
      all: flagSchema.meta({ default: true, description: 'false: the current team only.' }),
    }),
  },
  responses: errors.replies(200, 'The balances.', balanceSchema, ofTeams),
});

const listRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/api/teams',
  operationId: 'listTeams',
  summary: "The caller's teams",
  description: 'With members and balance.',
  responses: errors.replies(
    200,
    'With real-time balances; a caller without a team gets a personal one.',
    z.array(teamSchema),
    ['UNAUTHORIZED'],
  ),
});

const detailsRoute = createRoute({
  ...shared,
  method: 'get',
  path: '/api/teams/details/{teamId}',
  operationId: 'getTeamDetails',
  summary: 'One team',
  description: 'Only for its members.',
  request: { params: z.object({ teamId: z.string() }) },
  responses: errors.replies(200, 'With the stored balance.', teamSchema, ofTeams),
});

/** M: Teams and balance. */
export function teamRoutes(deps: HttpDeps) {
  return createRouter()
    .openapi(balanceRoute, async (context) =>
      context.json(await listBalances(deps, context.get('caller'), context.req.valid('query')), 200),
    )
    .openapi(listRoute, async (context) => context.json(await listTeams(deps, context.get('caller')), 200))
    .openapi(detailsRoute, async (context) => {
      const { teamId } = context.req.valid('param');
      return context.json(await teamDetails(deps, context.get('caller'), teamId), 200);
    });
}
