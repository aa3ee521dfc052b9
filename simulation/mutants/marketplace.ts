import type { OrchestratorClient } from '../../src/client/orchestrator-client.ts';
import type { MarketplaceDeps } from '../../src/compose/marketplace/marketplace.ts';
import type { MarketplaceOptions } from '../../src/marketplace/model/options.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { MarketPlant } from '../marketplace/world.ts';
import type { Mutant } from './mutant.ts';
import { wrapTransactions } from './wrap.ts';

type Provider = MarketplaceDeps['providers'][number];

/** Changes how a process reaches each provider. */
const wrapProviders =
  (change: (provider: Provider) => Partial<Provider>): MarketPlant =>
  (ports) => ({ ...ports, providers: ports.providers.map((one) => ({ ...one, ...change(one) })) });

const wrapClients =
  (change: (client: OrchestratorClient, clock: Clock) => Partial<OrchestratorClient>): MarketPlant =>
  (ports, ...at) =>
    wrapProviders(({ client }) => ({ client: { ...client, ...change(client, ports.clock) } }))(ports, ...at);

const withOptions =
  (change: (options: MarketplaceOptions) => Partial<MarketplaceOptions>): MarketPlant =>
  (ports) => ({ ...ports, options: { ...ports.options, ...change(ports.options) } });

const isNotFound = (error: unknown): boolean => (error as { problem?: string }).problem === 'not_found';

export const marketplaceMutants: readonly Mutant<MarketPlant>[] = [
  {
    id: 'gone-at-once',
    simulation: 'marketplace',
    title: 'one 404 ends a deployment',
    plant: wrapClients((client) => {
      const denied = new Map<string, unknown>();
      return {
        pollInstance: async (id, ...rest) => {
          if (denied.has(id)) throw denied.get(id);
          return client.pollInstance(id, ...rest).catch((error) => {
            if (isNotFound(error)) denied.set(id, error);
            throw error;
          });
        },
        listInstances: async (...args) =>
          (await client.listInstances(...args)).filter(({ id }) => !denied.has(id)),
      };
    }),
  },
  {
    id: 'launched-again',
    simulation: 'marketplace',
    title: 'a create without an answer is sent again',
    plant: wrapClients((client) => ({
      createInstance: (...args) => client.createInstance(...args).catch(() => client.createInstance(...args)),
    })),
  },
  {
    id: 'no-sweep',
    simulation: 'marketplace',
    title: 'instances that no poll asks for are never looked for',
    plant: wrapClients((client) => {
      const polled = new Set<string>();
      return {
        pollInstance: (id, ...rest) => {
          polled.add(id);
          return client.pollInstance(id, ...rest);
        },
        listInstances: async (...args) =>
          (await client.listInstances(...args)).filter(({ id }) => polled.has(id)),
      };
    }),
  },
  {
    id: 'blink',
    simulation: 'marketplace',
    title: 'a dedicated machine that twice reads stopped or leaving is believed',
    plant: withOptions(({ polling }) => ({ polling: { ...polling, blinkMs: 0 } })),
  },
  {
    id: 'losses-uncapped',
    simulation: 'marketplace',
    title: 'a provider that denies everything ends everything',
    plant: withOptions(({ maxLosses }) => ({ maxLosses: { ...maxLosses, share: 1, least: 1_000 } })),
  },
  {
    id: 'loss-deletes',
    simulation: 'marketplace',
    title: 'an instance is deleted because one poll answered 404',
    plant: wrapClients((client) => ({
      pollInstance: (id, region, ...rest) =>
        client.pollInstance(id, region, ...rest).catch(async (error) => {
          if (isNotFound(error)) await client.deleteInstance(id, region);
          throw error;
        }),
    })),
  },
  {
    id: 'shared-instance',
    simulation: 'marketplace',
    title: 'an instance of another deployment is assigned again',
    plant: {
      file: 'src/marketplace/sync/launch.ts',
      anchor: 'if (isTaken) return',
      replacement: 'if (isTaken && record === undefined) return',
    },
  },
  {
    id: 'key-kept',
    simulation: 'marketplace',
    title: 'the temporary key outlives its deployment',
    plant: wrapTransactions((part, name, call) =>
      part === 'sshKeys' && name === 'remove' ? Promise.resolve() : call(),
    ),
  },
  {
    id: 'unproved-login',
    simulation: 'marketplace',
    title: 'a machine counts as running and is billed before its user can log in',
    plant: wrapProviders(() => ({
      sshProbe: { probe: async () => ({ ok: true, hostKeyFingerprint: 'SHA256:planted' }) },
    })),
  },
  {
    id: 'beyond-observed',
    simulation: 'marketplace',
    title: 'time that the provider has not confirmed is billed',
    plant: {
      file: 'src/marketplace/ledger/post-due.ts',
      anchor: 'confirmedUntil ?? Number.NEGATIVE_INFINITY',
      replacement: 'Number.POSITIVE_INFINITY',
    },
  },
  {
    id: 'poll-time',
    simulation: 'marketplace',
    title: 'a stop counts from when it was noticed',
    plant: wrapClients((client, clock) => ({
      pollInstance: async (...args) => {
        const polled = await client.pollInstance(...args);
        if (polled === 'unchanged') return polled;
        const updated_at = new Date(clock.now()).toISOString();
        return { ...polled, instance: { ...polled.instance, updated_at } };
      },
    })),
  },
  {
    id: 'late-discount',
    simulation: 'marketplace',
    title: 'a discount that changes between two slices counts from the next slice',
    plant: {
      file: 'src/marketplace/ledger/price-change.ts',
      anchor: '[from, ...changesAfter(discounts, from)]',
      replacement: '[from]',
    },
  },
  {
    id: 'rounded-slices',
    simulation: 'marketplace',
    title: 'each slice is rounded separately',
    plant: {
      file: 'src/marketplace/ledger/segments.ts',
      anchor: 'owedOf(segment, until);',
      replacement: 'owedOf({ ...segment, startedAt: segment.postedUntil, postedMicroUsd: 0 }, until);',
    },
  },
  {
    id: 'delete-unproved',
    simulation: 'marketplace',
    title: 'a volume counts as deleted once its deletion is accepted',
    plant: wrapClients((client) => {
      const deleted = new Set<string>();
      return {
        deleteVolume: async (id, ...rest) => {
          const isTaken = await client.deleteVolume(id, ...rest);
          if (isTaken) deleted.add(id);
          return isTaken;
        },
        getVolume: (id, ...rest) => client.getVolume(deleted.has(id) ? 'planted' : id, ...rest),
      };
    }),
  },
];
