import type { Config } from '../../config/schema.ts';
import { ApiError } from '../../contract/errors.ts';
import { usdFromMicroUsd } from '../../contract/values.ts';
import type { Operation } from '../../operator-kit/operation.ts';
import { effectivePriceMicroUsdPerHour, type Offer } from '../../orchestrator/catalog/catalog.ts';
import { createOperatorApp, type OperatorDeps } from '../../orchestrator/http/operator/app.ts';
import { amend } from '../../orchestrator/instances/transition.ts';
import type { Store } from '../../orchestrator/model/store.ts';
import { commands } from '../../orchestrator/operate/commands.ts';
import type { Clock } from '../../ports/clock.ts';
import { ok } from '../../ports/diagnosis.ts';
import { type ProviderChanges, providerOperations } from '../../sandbox/operate/provider.ts';
import type { Server } from '../../sandbox/provider.ts';
import { operatorDepsOf } from '../orchestrator/operator-deps.ts';
import type { Orchestrator } from '../orchestrator/orchestrator.ts';
import { controlOperator, operatorUrl } from './control-operator.ts';
import type { LiveCatalog } from './live-catalog.ts';

/** The lifetimes of new tokens by the id of the account; undefined: of the other accounts. */
export type TokenTtlsMs = Map<string | undefined, number>;

interface Parts {
  /** Its name in the sandbox. */
  name: string;
  config: Config;
  sold: LiveCatalog;
  tokenTtlsMs: TokenTtlsMs;
  store: Store;
  clock: Clock;
  /** Stops virtual time until the returned function is called. */
  hold(): () => void;
}

/** Creates the operator API of a provider: that of production, its commands, and what only a sandbox has. */
export function operateProvider(orchestrator: Orchestrator, parts: Parts): Server {
  const { name, config, sold, clock, hold } = parts;
  const deps = operatorDepsOf(orchestrator, { config, catalog: sold.value, clock, examine });
  const further: readonly Operation<OperatorDeps & { changes: ProviderChanges }>[] = [
    ...commands.map((command) => held(command, hold)),
    ...providerOperations,
  ];
  const { nextId } = orchestrator.adminParts;
  return createOperatorApp(
    { ...deps, operators: controlOperator, changes: changesOf(parts) },
    { nextId, sandbox: { url: operatorUrl(name), operations: further } },
  );
}

async function* examine() {
  yield ok('sandbox', 'it is in memory, and has no prerequisites');
}

/** A command that works without a timer, such as to hash a password: virtual time stands still meanwhile. */
function held<Deps>(command: Operation<Deps>, hold: () => () => void): Operation<Deps> {
  return {
    ...command,
    perform: async (...given) => {
      const release = hold();
      return command.perform(...given).finally(release);
    },
  };
}

function changesOf({ sold, tokenTtlsMs, store, clock }: Parts): ProviderChanges {
  return {
    async movePrice(id, to) {
      sold.move(id, to);
      const offer = sold.value.offers.get(id) as Offer;
      return { ...pricesOf(offer), instances: await repriceSpot(store, offer, clock.now()) };
    },
    async setTokenLifetime(seconds, name) {
      const account = name === undefined ? undefined : await store.read.credentials.accountByName(name);
      if (account === null) throw new ApiError('not_found', `There is no account ${name}.`);
      tokenTtlsMs.set(account?.id, seconds * 1_000);
    },
  };
}

function pricesOf({ priceMicroUsdPerHour: price, spotPriceMicroUsdPerHour: spot }: Offer) {
  return {
    price_per_hour: usdFromMicroUsd(price),
    ...(spot !== undefined && { spot_price_per_hour: usdFromMicroUsd(spot) }),
  };
}

/** O: the price of a SPOT instance is its current one. All other instances keep theirs. Returns their number. */
async function repriceSpot(store: Store, offer: Offer, now: number): Promise<number> {
  if (offer.instanceType !== 'SPOT') return 0;
  const priceMicroUsdPerHour = effectivePriceMicroUsdPerHour(offer);
  return store.transact(async (tx) => {
    const own = (await tx.instances.list({})).filter(({ offerId }) => offerId === offer.id);
    for (const row of own) await amend(tx, row, now, { priceMicroUsdPerHour });
    return own.length;
  });
}
