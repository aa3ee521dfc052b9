import { z } from 'zod';
import { timestampSchema } from '../../contract/values.ts';
import { defineAction, defineView } from '../../operator-kit/operation.ts';
import { toTime } from '../../operator-kit/views/values.ts';
import * as alerts from '../mail/stock-alerts.ts';
import type { Providers } from '../providers/provider.ts';
import * as users from '../teams/users.ts';
import {
  changeUser,
  createKey,
  createUser,
  listKeys,
  listUsers,
  type PeopleDeps,
  revokeKey,
  userField,
} from './people.ts';
import {
  changeTeam,
  createTeam,
  endDiscount,
  listDiscounts,
  removeMember,
  setDiscount,
  setMember,
  switchTeam,
} from './teams.ts';

export interface CommandDeps extends PeopleDeps {
  /** The providers and their catalogs. */
  sellers: Providers;
}

const alertSchema = z
  .object({
    id: z.string(),
    user_id: z.string(),
    provider: z.string(),
    offer: z.string(),
    region: z.string().nullable().meta({ description: 'Null: any region.' }),
    created_at: timestampSchema,
  })
  .meta({ id: 'StockAlert' });
type Alert = z.output<typeof alertSchema>;

export const listStockAlerts = defineView({
  name: 'listStockAlerts',
  tag: 'People',
  path: '/stock-alerts',
  summary: 'Stock alerts',
  description: 'Of one user, or of all.',
  input: { user: userField.optional() },
  errors: ['not_found'],
  reply: ['The alerts.', z.object({ alerts: z.array(alertSchema) })],
  read: async ({ store: { read } }: PeopleDeps, { user }) => {
    const found =
      user === undefined
        ? await read.stockAlerts.list()
        : await read.stockAlerts.ofUser((await users.findUser(read.users, user)).id);
    return {
      alerts: found.map((alert) => ({
        id: alert.id,
        user_id: alert.userId,
        provider: alert.providerId,
        offer: alert.offerId,
        region: alert.region,
        created_at: toTime(alert.createdAt),
      })),
    };
  },
  commands: [
    {
      name: 'alerts ls',
      description: 'list the alerts of a user, or of all',
      args: { user: ['[email]'] },
      list: {},
    },
  ],
  list: {
    rows: 'alerts',
    title: 'Stock alerts',
    none: 'There is no such alert.',
    columns: ['id', 'user_id', 'provider', 'offer', 'region', 'created_at'],
  },
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
  form: {
    title: () => 'Mail a user when an offer returns to stock',
    button: 'Create',
    page: () => '/console/stock-alerts',
    beside: 'listStockAlerts',
  },
  run: async (
    { sellers: providers, ...deps }: CommandDeps,
    { user, provider: providerId, offer: offerId, region = null },
  ) => {
    const { id: userId } = await deps.store.transact((tx) => users.findUser(tx.users, user));
    const wanted = { userId, providerId, offerId, region };
    const { id } = await alerts.subscribeToStock({ ...deps, providers }, wanted);
    return { id };
  },
  commands: [
    {
      name: 'alerts create',
      description: 'mail a user when the offer returns to stock',
      args: { user: ['<email>'], provider: ['<provider>'], offer: ['<offer>'] },
      flags: { region: ['--region <region>', 'in this region; default: in any'] },
      toText: ({ id }, { user, provider, offer }) => [
        `Alert ${id}: ${user} is mailed when ${offer} of ${provider} is back.`,
      ],
    },
  ],
});

const unsubscribeFromStock = defineAction({
  name: 'unsubscribeFromStock',
  tag: 'People',
  path: '/stock-alerts/{alertId}/remove',
  summary: 'End a stock alert',
  description: 'The user gets no further mail of it.',
  input: { alertId: z.string() },
  reply: ['The ended alert.', z.object({ id: z.string() })],
  audit: ({ alertId }) => ({ action: 'alert.remove', subject: alertId }),
  run: async (deps: PeopleDeps, { alertId: id }) => {
    await alerts.unsubscribeFromStock(deps, id);
    return { id };
  },
  commands: [
    {
      name: 'alerts rm',
      description: 'end an alert',
      args: { alertId: ['<id>'] },
      toText: ({ id }) => [`Alert ${id} is ended.`],
    },
  ],
  form: {
    title: () => 'End a stock alert',
    button: 'End',
    inRows: { of: 'listStockAlerts', fields: ({ id }: Alert) => ({ alertId: id }) },
    page: () => '/console/stock-alerts',
  },
});

/** The views and actions of users, their keys, teams, discounts and stock alerts. */
export const peopleOperations = [
  listUsers,
  createUser,
  changeUser,
  listKeys,
  createKey,
  revokeKey,
  createTeam,
  changeTeam,
  setMember,
  removeMember,
  switchTeam,
  listDiscounts,
  setDiscount,
  endDiscount,
  listStockAlerts,
  subscribeToStock,
  unsubscribeFromStock,
] as const;
