import { z } from 'zod';
import { timestampSchema } from '../../contract/values.ts';
import { linkOfId } from '../../operator-kit/columns.ts';
import { defineAction, defineView } from '../../operator-kit/operation.ts';
import { timeOrNullSchema, toTime } from '../../operator-kit/views/values.ts';
import { teamRoles } from '../contract/team.ts';
import * as discounts from '../discounts/discounts.ts';
import { findTeam } from '../model/own-rows.ts';
import { type DiscountRecord, memberRights } from '../model/people.ts';
import * as members from '../teams/members.ts';
import * as teams from '../teams/teams.ts';
import { type PeopleDeps, teamField, userField } from './people.ts';

export const createTeam = defineAction({
  name: 'createTeam',
  tag: 'People',
  path: '/teams',
  summary: 'Create a team',
  description: 'The owner must be a user.',
  input: { name: z.string(), owner: userField, slug: z.string().optional() },
  example: { name: 'Research', owner: 'kim@example.com' },
  status: 201,
  errors: ['not_found'],
  reply: ['The team.', z.object({ id: z.string(), name: z.string(), slug: z.string() })],
  audit: ({ name, owner }) => ({
    action: 'team.create',
    detail: { name, owner },
    done: ({ id }) => ({ subject: id }),
  }),
  form: { title: () => 'Create a team', button: 'Create', page: () => '/console/teams', beside: 'listTeams' },
  run: async (deps: PeopleDeps, given) => {
    const { id, name, slug } = await teams.createTeam(deps, given);
    return { id, name, slug };
  },
  commands: [
    {
      name: 'teams create',
      description: 'create a team',
      args: { name: ['<name>'] },
      flags: {
        owner: ['--owner <email>', 'who owns it', { isRequired: true }],
        slug: ['--slug <slug>', 'its unique short name'],
      },
      toText: ({ id, name, slug }) => [`Team ${name} (${id}, ${slug}) is created.`],
    },
  ],
});

export const changeTeam = defineAction({
  name: 'changeTeam',
  tag: 'People',
  path: '/teams/{team}',
  summary: 'Set what the members of a team may change',
  description:
    '`own`: what they made themselves. `all`: everything of the team. Owners and admins may change all.',
  input: { team: teamField, member_rights: z.enum(memberRights) },
  example: { member_rights: 'all' },
  errors: ['not_found'],
  reply: ['The team.', z.object({ id: z.string(), slug: z.string(), member_rights: z.enum(memberRights) })],
  audit: ({ team, member_rights: rights }) => ({
    action: 'team.set',
    subject: team,
    detail: { member_rights: rights },
    done: ({ id: subject }) => ({ subject }),
  }),
  run: async (deps: PeopleDeps, { team, member_rights: wanted }) => {
    const { id, slug, memberRights: rights } = await teams.setMemberRights(deps, team, wanted);
    return { id, slug, member_rights: rights };
  },
  commands: [
    {
      name: 'teams set',
      description: 'set what the members of a team may change and end',
      args: { team: ['<team>'] },
      flags: {
        member_rights: ['--member-rights <what>', 'what they made, or all', { isRequired: true }],
      },
      toText: ({ slug, member_rights: rights }) => [
        `Members of ${slug} may change and end ${rights === 'all' ? 'everything of the team' : 'what they made'}.`,
      ],
    },
  ],
});

const memberSchema = z.object({ team_id: z.string(), user: z.string() });

export const setMember = defineAction({
  name: 'setMember',
  tag: 'People',
  path: '/teams/{team}/members',
  summary: 'Add a user to a team, or change their role',
  description:
    'Owners and admins get the billing mails of the team. A new owner makes the former one an admin.',
  input: { team: teamField, user: userField, role: z.enum(teamRoles) },
  example: { user: 'kim@example.com', role: 'admin' },
  reply: ['The member.', memberSchema.extend({ role: z.enum(teamRoles) })],
  audit: ({ team, user, role }) => ({
    action: 'team.set_member',
    subject: team,
    detail: { user, role },
    done: ({ team_id: subject }) => ({ subject }),
  }),
  run: async (deps: PeopleDeps, { user, ...membership }) => {
    const { teamId, role } = await members.setMember(deps, { user, ...membership });
    return { team_id: teamId, user, role };
  },
  commands: [
    {
      name: 'teams add-member',
      description: 'add a user to a team, or change their role',
      args: { team: ['<team>'], user: ['<email>'] },
      flags: { role: ['--role <role>', 'what they may do', { default: 'member' }] },
      toText: (_member, { team, user, role }) => [`${user} is ${role} of ${team}.`],
    },
  ],
});

export const removeMember = defineAction({
  name: 'removeMember',
  tag: 'People',
  path: '/teams/{team}/members/remove',
  summary: 'Remove a user from a team',
  description: 'What the user has deployed stays with the team.',
  input: { team: teamField, user: userField },
  example: { user: 'kim@example.com' },
  reply: ['The former member.', memberSchema],
  audit: ({ team, user }) => ({
    action: 'team.remove_member',
    subject: team,
    detail: { user },
    done: ({ team_id: subject }) => ({ subject }),
  }),
  run: async (deps: PeopleDeps, { team, user }) => {
    const { teamId } = await members.removeMember(deps, { team, user });
    return { team_id: teamId, user };
  },
  commands: [
    {
      name: 'teams remove-member',
      description: 'remove a user from a team',
      args: { team: ['<team>'], user: ['<email>'] },
      toText: (_member, { team, user }) => [`${user} is no longer a member of ${team}.`],
    },
  ],
});

export const switchTeam = defineAction({
  name: 'switchTeam',
  tag: 'People',
  path: '/users/{user}/team',
  summary: 'Set the current team of a user',
  description: 'Requests of the user without `teamId` are of this team.',
  input: { user: userField, team: teamField },
  example: { team: 'research' },
  reply: ['The user.', z.object({ user: z.string(), team: z.string() })],
  audit: ({ user, team }) => ({ action: 'user.switch_team', subject: user, detail: { team } }),
  run: async (deps: PeopleDeps, { user, team }) => {
    await teams.switchTeam(deps, { user, team });
    return { user, team };
  },
  commands: [
    {
      name: 'teams switch',
      description: "make a team the user's current one",
      args: { user: ['<email>'], team: ['<team>'] },
      toText: ({ user, team }) => [`${team} is the current team of ${user}.`],
    },
  ],
});

const discountSchema = z
  .object({
    id: z.string(),
    team_id: z.string(),
    source: z.string(),
    percent: z.int(),
    from: timestampSchema,
    until: timeOrNullSchema,
  })
  .meta({ id: 'Discount' });
type Discount = z.output<typeof discountSchema>;

function toDiscount(record: DiscountRecord): Discount {
  const { id, teamId, source, percentage, startsAt, endsAt } = record;
  return { id, team_id: teamId, source, percent: percentage, from: toTime(startsAt), until: toTime(endsAt) };
}

export const listDiscounts = defineView({
  name: 'listDiscounts',
  tag: 'Discounts',
  path: '/discounts',
  summary: 'Discounts',
  description: 'Of one team, or of all; with those that are over.',
  input: { team: teamField.optional() },
  errors: ['not_found'],
  reply: ['The discounts.', z.object({ discounts: z.array(discountSchema) })],
  read: async ({ store: { read } }: PeopleDeps, { team }) => {
    const found =
      team === undefined
        ? await read.discounts.list()
        : await read.discounts.ofTeam((await findTeam(read.teams, team)).id);
    return { discounts: found.map(toDiscount) };
  },
  commands: [
    {
      name: 'discounts ls',
      description: 'list the discounts of a team, or of all; those that are over too',
      args: { team: ['[team]'] },
      list: {},
    },
  ],
  list: {
    rows: 'discounts',
    title: 'Discounts',
    none: 'There is no such discount.',
    columns: [
      'id',
      { field: 'team_id', title: 'team', page: ({ team_id: team }) => linkOfId(team) },
      'source',
      'percent',
      { field: 'from', kind: 'moment' },
      { field: 'until', kind: 'moment' },
    ],
  },
});

export const setDiscount = defineAction({
  name: 'setDiscount',
  tag: 'Discounts',
  path: '/teams/{team}/discounts',
  summary: 'Give a team a discount',
  description: 'Of 5 to 50 percent. The best one of a team applies.',
  input: {
    team: teamField,
    percent: z.int(),
    from: timestampSchema.optional().meta({ description: 'Absent: now.' }),
    until: timestampSchema.optional().meta({ description: 'Absent: until it is ended.' }),
  },
  example: { percent: 20 },
  status: 201,
  reply: ['The discount.', discountSchema],
  audit: ({ team, percent: percentage, until = null }) => ({
    action: 'discount.set',
    subject: team,
    detail: { percentage, until },
    done: ({ team_id: subject }) => ({ subject }),
  }),
  form: {
    title: () => 'Give a team a discount',
    button: 'Give',
    page: () => '/console/discounts',
    beside: 'listDiscounts',
  },
  run: async (deps: PeopleDeps, { team, percent: percentage, from, until }) => {
    const { id: teamId } = await deps.store.transact((tx) => findTeam(tx.teams, team));
    const startsAt = from === undefined ? undefined : Date.parse(from);
    const endsAt = until === undefined ? null : Date.parse(until);
    return toDiscount(await discounts.assignDiscount(deps, { teamId, percentage, startsAt, endsAt }));
  },
  commands: [
    {
      name: 'discounts set',
      description: 'give a team a discount of 5 to 50 percent',
      args: { team: ['<team>'], percent: ['<percentage>'] },
      flags: {
        from: ['--from <when>', 'in 30m, 2h or 7d, or at an RFC 3339 time; default now', { mayBePast: true }],
        until: ['--until <when>', 'default: until it is ended', { mayBePast: true }],
      },
      toText: ({ id, percent, from, until }) => [
        `Discount ${id}: ${percent} % from ${from} until ${until ?? '-'}.`,
      ],
    },
  ],
});

export const endDiscount = defineAction({
  name: 'endDiscount',
  tag: 'Discounts',
  path: '/discounts/{discountId}/end',
  summary: 'End a discount now',
  description: 'Ending it again keeps the first end.',
  input: { discountId: z.string() },
  errors: ['not_found'],
  reply: ['The discount.', discountSchema],
  audit: ({ discountId }) => ({ action: 'discount.end', subject: discountId }),
  run: async (deps: PeopleDeps, { discountId }) => toDiscount(await discounts.endDiscount(deps, discountId)),
  commands: [
    {
      name: 'discounts end',
      description: 'end an assigned discount now',
      args: { discountId: ['<id>'] },
      toText: ({ id, until }) => [`Discount ${id} ends at ${until}.`],
    },
  ],
  form: {
    title: ({ discountId }) => `End the discount ${discountId} now`,
    button: 'End now',
    inRows: {
      of: 'listDiscounts',
      fields: ({ id, until }: Discount) => (until === null ? { discountId: id } : undefined),
    },
    page: () => '/console/discounts',
    preview: () => ['From now on, usage of the team is billed without it.'],
  },
});
