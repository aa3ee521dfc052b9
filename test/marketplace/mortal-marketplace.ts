import type { RequestListener } from 'node:http';
import { createClient } from '../../src/client/create-client.ts';
import { type OrchestratorClient, ProviderError } from '../../src/client/orchestrator-client.ts';
import { type Marketplace, startMarketplace } from '../../src/compose/marketplace/marketplace.ts';
import { loadGpuTypes } from '../../src/compose/marketplace/providers.ts';
import { bundledProfileFile, loadProfile } from '../../src/config/marketplace/load-profile.ts';
import type { Mailer } from '../../src/marketplace/mail/mailer.ts';
import { defaultRateLimits, type MarketplaceOptions } from '../../src/marketplace/model/options.ts';
import type { Store, Transaction } from '../../src/marketplace/model/store.ts';
import type { Log } from '../../src/ports/log.ts';
import { systemRandom } from '../../src/runtime/system.ts';
import { openMarketplaceSqliteStore } from '../../src/store/marketplace/sqlite/store.ts';
import { mortalClock, type VirtualClock } from '../support/time/virtual-clock.ts';
import type { SimulatedProvider } from './simulated-provider.ts';

/** Calls to providers that are under way, of all processes. */
export interface Traffic {
  calls: number;
}

export interface MarketplaceLife {
  marketplace: Marketplace;
  listener: RequestListener;
  store: Store;
  /** Ends it as a process that is killed ends: nothing of it is written, sent or answered any more. */
  kill(): Promise<void>;
  /** Ends it as an operator does. */
  close(): Promise<void>;
}

export interface LifeOptions {
  clock: VirtualClock;
  providers: readonly SimulatedProvider[];
  databasePath: string;
  options: MarketplaceOptions;
  /** A lease that is shorter than a step of the clock would be lost in each. */
  leaseMs: number;
  traffic: Traffic;
  mailer: Mailer;
  log: Log;
}

const UNLIMITED = 1_000_000_000;

/** One process of the marketplace: what it has in memory dies with it. */
export async function startLife(parts: LifeOptions): Promise<MarketplaceLife> {
  let isAlive = true;
  const alive = () => isAlive;
  const own = openMarketplaceSqliteStore(parts.databasePath);
  const store = mortalStore(own, alive, parts.leaseMs);
  const clock = mortalClock(parts.clock, alive);
  const clients = parts.providers.map(({ id, baseUrl, apiKey, platform }) => ({
    sshProbe: platform.ssh,
    profile: { ...loadProfile(bundledProfileFile(id) ?? ''), id },
    client: counted(
      createClient({
        baseUrl,
        credential: { apiKey },
        allowPrivate: true,
        clock,
        timeoutMs: parts.options.polling.callTimeoutMs,
      }),
      { traffic: parts.traffic, isAlive: alive },
    ),
  }));
  const marketplace = await startMarketplace({
    store,
    clock,
    random: systemRandom,
    log: parts.log,
    options: parts.options,
    providers: clients,
    gpuTypes: loadGpuTypes(),
    mailer: parts.mailer,
    maxBodyBytes: 1024 * 1024,
    trustedProxies: 0,
    rateLimits: {
      ...defaultRateLimits,
      ...{
        catalogReads: UNLIMITED,
        accountRequests: UNLIMITED,
        creates: UNLIMITED,
        otherRequests: UNLIMITED,
      },
    },
  });
  return {
    marketplace,
    store,
    listener: marketplace.listener,
    kill: async () => {
      isAlive = false;
      await Promise.all(clients.map(({ client }) => client.close()));
      await own.close();
    },
    close: async () => {
      await marketplace.close();
      await own.close();
    },
  };
}

/** The store of a process: after its death nothing is read or written, and no promise is kept. */
function mortalStore(store: Store, isAlive: () => boolean, leaseMs: number): Store {
  const lasting = (leases: Transaction['leases']): Transaction['leases'] => ({
    ...leases,
    claim: (name, holder, now, ttlMs) => leases.claim(name, holder, now, Math.max(ttlMs, leaseMs)),
  });
  return {
    ...store,
    transact: (body) => {
      if (!isAlive()) return never();
      return store.transact((tx) => body({ ...tx, leases: lasting(tx.leases) }));
    },
  };
}

const noChanges = new ProviderError('not_found', '404', { status: 404 });

/**
 * Counts the calls that are under way; those of the dead are never answered. Changes are not listed: a request that waits for
 * one would be under way all the time.
 */
function counted(
  client: OrchestratorClient,
  { traffic, isAlive }: { traffic: Traffic; isAlive: () => boolean },
): OrchestratorClient {
  return new Proxy(client, {
    get: (target, name) => {
      const method = Reflect.get(target, name) as (...values: unknown[]) => Promise<unknown>;
      if (name === 'close') return () => method.call(target);
      if (name === 'listChanges') return () => Promise.reject(noChanges);
      return async (...values: unknown[]) => {
        if (!isAlive()) return never();
        traffic.calls += 1;
        try {
          const answer = await method.apply(target, values);
          return isAlive() ? answer : never();
        } catch (error) {
          if (!isAlive()) return never();
          throw error;
        } finally {
          traffic.calls -= 1;
        }
      };
    },
  });
}

function never(): Promise<never> {
  return new Promise(() => undefined);
}
