import { z } from 'zod';
import { timestampSchema } from '../../contract/values.ts';
import { defineAction, defineView } from '../../operator-kit/operation.ts';
import { timeOrNullSchema, toTime } from '../../operator-kit/views/values.ts';
import type { Clock, Random } from '../../ports/clock.ts';
import { teamRoles } from '../contract/team.ts';
import * as discounts from '../discounts/discounts.ts';
import { findTeam } from '../model/own-rows.ts';
import type { ApiKeyRecord, DiscountRecord, UserRecord } from '../model/people.ts';
import type { Store } from '../model/store.ts';
import type { Providers } from '../providers/provider.ts';
import * as keys from '../teams/keys.ts';
import * as members from '../teams/members.ts';
import * as teams from '../teams/teams.ts';
import * as users from '../teams/users.ts';

interface Deps {
  store: Store;
  clock: Clock;
  random: Random;
}

export interface CommandDeps extends Deps {
  /** The providers and their catalogs. */
  sellers: Providers;
}

const userField = z.string().meta({ description: 'The e-mail address or the id of a user.' });
const teamField = z.string().meta({ description: 'The slug or the id of a team.' });

const settingFields = {
  name: z.string().optional(),
  allow_keys: z.boolean().optional().meta({ description: 'Whether the user may have API keys.' }),
  create_limit: z
    .int()
    .nullable()
    .optional()
    .meta({ description: 'Deployments in 15 minutes. null: the default; -1: no limit.' }),
  minimum_runtime_minutes: z
    .number()
    .nullable()
    .optional()
    .meta({ description: 'Minimum runtime before a terminate. null: the default.' }),
  deployment_mail: z
    .boolean()
    .optional()
    .meta({ description: 'Whether the user gets a mail when a deployment is ready or failed.' }),
  marketing_mail: z.boolean().optional(),
};
type Settings = z.output<z.ZodObject<typeof settingFields>>;

function toChanges({
  name,
  allow_keys: mayMakeKeys,
  create_limit: createLimit,
  minimum_runtime_minutes: minimumRuntimeMinutes,
  deployment_mail: wantsDeploymentMail,
  marketing_mail: wantsMarketingMail,
}: Settings): users.UserChanges {
  return {
    ...(name !== undefined && { name }),
    ...(mayMakeKeys !== undefined && { mayMakeKeys }),
    ...(createLimit !== undefined && { createLimit }),
    ...(minimumRuntimeMinutes !== undefined && { minimumRuntimeMinutes }),
    ...(wantsDeploymentMail !== undefined && { wantsDeploymentMail }),
    ...(wantsMarketingMail !== undefined && { wantsMarketingMail }),
  };
}

const userSchema = z
  .object({
    id: z.string(),
    email: z.string(),
    name: z.string(),
    allow_keys: z.boolean(),
    create_limit: z.int().nullable(),
    minimum_runtime_minutes: z.number().nullable(),
    deployment_mail: z.boolean(),
    marketing_mail: z.boolean(),
  })
  .meta({ id: 'User' });

function toUser(user: UserRecord): z.output<typeof userSchema> {
  return {
    id: user.id,
    email: user.email,
    name: user.name,
    allow_keys: user.mayMakeKeys,
    create_limit: user.createLimit,
    minimum_runtime_minutes: user.minimumRuntimeMinutes,
    deployment_mail: user.wantsDeploymentMail,
    marketing_mail: user.wantsMarketingMail,
  };
}

const createUser = defineAction({
  name: 'createUser',
  tag: 'People',
  path: '/users',
  summary: 'Add a user',
  description: 'The user has no key yet. Without a team, the first use creates a personal one.',
  input: { email: z.string(), team: teamField.optional(), ...settingFields },
  example: { email: 'kim@example.com', allow_keys: true },
  status: 201,
  errors: ['not_found'],
  reply: ['The user.', userSchema],
  audit: ({ email, team, ...settings }) => ({
    action: 'user.add',
    subject: email,
    detail: { ...toChanges(settings), ...(team !== undefined && { team }) },
  }),
  run: async (deps: Deps, { email, team, ...settings }) =>
    toUser(await users.addUser(deps, { email, team, ...toChanges(settings) })),
});

const changeUser = defineAction({
  name: 'changeUser',
  tag: 'People',
  path: '/users/{user}',
  summary: 'Change the settings of a user',
  description: 'Only the given settings change.',
  input: { user: userField, ...settingFields },
  check: [
    ({ user: _user, ...settings }) => Object.values(settings).some((value) => value !== undefined),
    { path: [], error: `expected one of ${Object.keys(settingFields).join(', ')}` },
  ],
  example: { deployment_mail: true },
  errors: ['not_found'],
  reply: ['The user.', userSchema],
  audit: ({ user, ...settings }) => ({ action: 'user.set', subject: user, detail: toChanges(settings) }),
  run: async (deps: Deps, { user, ...settings }) =>
    toUser(await users.changeUser(deps, user, toChanges(settings))),
});

const keySchema = z
  .object({
    id: z.string(),
    user: z.string(),
    key: z.string().meta({ description: 'Its beginning and its end.' }),
    label: z.string().nullable(),
    state: z.enum(['valid', 'revoked', 'expired']),
    expires_at: timeOrNullSchema,
  })
  .meta({ id: 'UserKey' });

const listKeys = defineView({
  name: 'listKeys',
  tag: 'People',
  path: '/users/{user}/keys',
  summary: 'The keys of a user',
  description: 'With those that have ended.',
  input: { user: userField },
  errors: ['not_found'],
  reply: ['The keys.', z.object({ keys: z.array(keySchema) })],
  read: async ({ store: { read }, clock }: Deps, { user: name }) => {
    const user = await users.findUser(read.users, name);
    const own = await read.keys.ofUser(user.id);
    return { keys: own.map((key) => toKey(key, user.email, clock.now())) };
  },
});

function toKey(key: ApiKeyRecord, user: string, now: number): z.output<typeof keySchema> {
  const { id, prefix, lastFour, label, revokedAt, expiresAt } = key;
  const hasExpired = expiresAt !== null && expiresAt <= now;
  const state = revokedAt !== null ? 'revoked' : hasExpired ? 'expired' : 'valid';
  return { id, user, key: `${prefix}…${lastFour}`, label, state, expires_at: toTime(expiresAt) };
}

export const createKey = defineAction({
  name: 'createKey',
  tag: 'People',
  path: '/users/{user}/keys',
  summary: 'Create a key for a user',
  description: 'The key is shown only once.',
  input: {
    user: userField,
    label: z.string().max(200).optional(),
    expires_at: timestampSchema.optional().meta({ description: 'Absent: no expiry.' }),
  },
  example: { expires_at: '2030-01-01T00:00:00Z' },
  isBodyOptional: true,
  status: 201,
  reply: ['The key.', z.object({ id: z.string(), api_key: z.string() })],
  audit: ({ user, label }) => ({ action: 'key.create', subject: user, detail: { label } }),
  run: async (deps: Deps, { user, label = null, expires_at: expires }) => {
    const expiresAt = expires === undefined ? null : Date.parse(expires);
    const { key, record } = await keys.createKey(deps, user, { label, expiresAt });
    return { id: record.id, api_key: key };
  },
});

export const revokeKey = defineAction({
  name: 'revokeKey',
  tag: 'People',
  path: '/keys/{keyId}/revoke',
  summary: 'Revoke a key',
  description: 'Revoking again keeps the first time.',
  input: { keyId: z.string() },
  errors: ['not_found'],
  reply: ['The key is revoked.', z.object({ id: z.string(), revoked_at: timestampSchema })],
  audit: ({ keyId }) => ({ action: 'key.revoke', subject: keyId }),
  run: async (deps: Deps, { keyId: id }) => ({ id, revoked_at: toTime(await keys.revokeKey(deps, id)) }),
});

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
  run: async (deps: Deps, given) => {
    const { id, name, slug } = await teams.createTeam(deps, given);
    return { id, name, slug };
  },
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
  run: async (deps: Deps, { user, ...membership }) => {
    const { teamId, role } = await members.setMember(deps, { user, ...membership });
    return { team_id: teamId, user, role };
  },
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
  run: async (deps: Deps, { team, user }) => {
    const { teamId } = await members.removeMember(deps, { team, user });
    return { team_id: teamId, user };
  },
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
  run: async (deps: Deps, { user, team }) => {
    await teams.switchTeam(deps, { user, team });
    return { user, team };
  },
});

const discountSchema = z
  .object({
    id: z.string(),
    team_id: z.string(),
    percent: z.int(),
    from: timestampSchema,
    until: timeOrNullSchema,
  })
  .meta({ id: 'Discount' });

function toDiscount(record: DiscountRecord): z.output<typeof discountSchema> {
  const { id, teamId, percentage, startsAt, endsAt } = record;
  return { id, team_id: teamId, percent: percentage, from: toTime(startsAt), until: toTime(endsAt) };
}

const setDiscount = defineAction({
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
  run: async (deps: Deps, { team, percent: percentage, from, until }) => {
    const { id: teamId } = await deps.store.transact((tx) => findTeam(tx.teams, team));
    const startsAt = from === undefined ? undefined : Date.parse(from);
    const endsAt = until === undefined ? null : Date.parse(until);
    return toDiscount(await discounts.assignDiscount(deps, { teamId, percentage, startsAt, endsAt }));
  },
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
  run: async (deps: Deps, { discountId }) => toDiscount(await discounts.endDiscount(deps, discountId)),
});

const subscribeToStock = defineAction({
  name: 'subscribeToStock',
  tag: 'People',
  path: '/users/{user}/stock-alerts',
  summary: 'Mail a user when an offer returns to stock',
  description: 'Users who want no marketing mail get none.',
  input: {
    user: userField,
    provider: z.string(),
    offer: z.string(),
    region: z.string().optional().meta({ description: 'Absent: any region.' }),
  },
  example: { provider: 'provider-d', offer: 'd-cpu-4x16' },
  status: 201,
  errors: ['not_found'],
  reply: ['The alert.', z.object({ id: z.string() })],
  audit: ({ user, provider, offer, region = null }) => ({
    action: 'alert.add',
    subject: user,
    detail: { provider, offer, region },
  }),
  run: async (
    { sellers: providers, ...deps }: CommandDeps,
    { user, provider: providerId, offer: offerId, region = null },
  ) => {
    const { id: userId } = await deps.store.transact((tx) => users.findUser(tx.users, user));
    const wanted = { userId, providerId, offerId, region };
    // The other commands of the command line load no mail.
    const alerts = await import('../mail/stock-alerts.ts');
    const { id } = await alerts.subscribeToStock({ ...deps, providers }, wanted);
    return { id };
  },
});

/** What an operator of production does on the command line only. The operator API of a sandbox has it too. */
export const commands = [
  createUser,
  changeUser,
  listKeys,
  createKey,
  revokeKey,
  createTeam,
  setMember,
  removeMember,
  switchTeam,
  setDiscount,
  endDiscount,
  subscribeToStock,
] as const;
