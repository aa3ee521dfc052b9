import { z } from '@hono/zod-openapi';
import { balanceSchema, teamSchema } from '../../contract/team.ts';
import { flagSchema } from '../../contract/values.ts';
import { listBalances, listTeams, teamDetails } from '../../teams/show-teams.ts';
import type { HttpDeps } from '../deps.ts';
import { ofTeams } from '../errors.ts';
import { Routes } from '../route.ts';

/** M: Teams and balance. */
export function teamRoutes(deps: HttpDeps) {
  return new Routes('Teams and balance')
    .add('get', '/api/balance', {
      operationId: 'getBalance',
      summary: 'Balances of the teams',
      description: 'In USD, for each team of the caller; `all=false`: the current team only.',
      query: {
        teamId: z.string().optional(),
        all: flagSchema.meta({ default: true, description: 'false: the current team only.' }),
      },
      reply: ['The balances.', balanceSchema, ofTeams],
      run: ({ caller, query }) => listBalances(deps, caller, query),
    })
    .add('get', '/api/teams', {
      operationId: 'listTeams',
      summary: "The caller's teams",
      description: 'With members and balance.',
      reply: [
        'With real-time balances; a caller without a team gets a personal one.',
        z.array(teamSchema),
        ['UNAUTHORIZED'],
      ],
      run: ({ caller }) => listTeams(deps, caller),
    })
    .add('get', '/api/teams/details/{teamId}', {
      operationId: 'getTeamDetails',
      summary: 'One team',
      description: 'Only for its members.',
      params: { teamId: z.string() },
      reply: ['With the stored balance.', teamSchema, ofTeams],
      run: ({ caller, params }) => teamDetails(deps, caller, params.teamId),
    });
}
