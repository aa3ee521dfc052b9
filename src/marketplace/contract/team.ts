import { z } from 'zod';
import { timestampSchema, usdSchema } from './values.ts';

export const teamRoles = ['owner', 'admin', 'member'] as const;
export type TeamRole = (typeof teamRoles)[number];
const teamRoleSchema = z.enum(teamRoles).meta({ id: 'TeamRole' });

/** M: Team. */
export const teamSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    slug: z.string(),
    ownerId: z.string(),
    balance: usdSchema,
    members: z.array(
      z.object({
        userId: z.string(),
        email: z.string(),
        name: z.string(),
        role: teamRoleSchema,
        joinedAt: timestampSchema,
      }),
    ),
    createdAt: timestampSchema,
  })
  .meta({ id: 'Team' });
export type Team = z.infer<typeof teamSchema>;

/** M: Balance entry. */
export const balanceSchema = z
  .object({
    teams: z.array(
      z.object({
        teamId: z.string(),
        teamName: z.string(),
        balance: usdSchema,
        isCurrentTeam: z.boolean(),
        role: teamRoleSchema,
      }),
    ),
    currency: z.literal('USD'),
  })
  .meta({ id: 'Balance' });
export type Balance = z.infer<typeof balanceSchema>;
