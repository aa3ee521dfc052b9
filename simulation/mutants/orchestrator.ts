import type { ClaimWriter } from '../../src/orchestrator/model/claims.ts';
import type { ObservedMachine, OwnerRef, Presence } from '../../src/orchestrator/model/platform-driver.ts';
import type { Lease, LeaseCheck } from '../../src/orchestrator/model/work.ts';
import { interceptMethods } from '../kernel/intercept-methods.ts';
import type { OrchestratorPlant } from '../orchestrator/world.ts';
import type { Mutant } from './mutant.ts';
import { hide, wrapDrivers, wrapTransactions } from './wrap.ts';

type Claim = Parameters<ClaimWriter['take']>[0];

const refused = { outcome: 'failed', code: 'invalid', sideEffect: 'none', detail: 'planted' } as const;

export const orchestratorMutants: readonly Mutant<OrchestratorPlant>[] = [
  {
    id: 'create-forgotten',
    simulation: 'orchestrator',
    title: 'a create without an answer counts as refused',
    plant: wrapDrivers((driver) => ({ create: (...args) => driver.create(...args).catch(() => refused) })),
  },
  {
    id: 'create-again',
    simulation: 'orchestrator',
    title: 'a create without an answer is repeated without looking for its machine',
    plant: wrapDrivers((driver) => ({
      create: (...args) => driver.create(...args).catch(() => driver.create(...args)),
    })),
  },
  {
    id: 'late-create',
    simulation: 'orchestrator',
    title: 'a row counts as gone while an interrupted create may still make its machine',
    plant: {
      file: 'src/orchestrator/steps/destroy.ts',
      anchor: 'return waitMs > 0',
      replacement: 'return waitMs > Number.MAX_VALUE',
    },
  },
  {
    id: 'visibility',
    simulation: 'orchestrator',
    title: 'Berth ignores for how long the platform may hide a new machine',
    plant: wrapDrivers(({ manifest }) => ({ manifest: { ...manifest, createVisibleWithinMs: 0 } })),
  },
  {
    id: 'removal-believed',
    simulation: 'orchestrator',
    title: 'a removal is believed because the platform reports it as done',
    plant: wrapDrivers((driver) => {
      const removed = new Set<OwnerRef>();
      return {
        ...hide(driver, (ref) => removed.has(ref)),
        destroy: async (ref, ...rest) => {
          const step = await driver.destroy(ref, ...rest);
          if (step.outcome === 'done') removed.add(ref);
          return step;
        },
      };
    }),
  },
  {
    id: 'listing-believed',
    simulation: 'orchestrator',
    title: 'a machine missing from one listing counts as gone',
    plant: wrapDrivers((driver) => {
      const [seen, missing] = [new Set<OwnerRef>(), new Set<OwnerRef>()];
      const hidden = hide(driver, (ref) => missing.has(ref));
      return {
        ...hidden,
        list: async () => {
          const listing = await hidden.list();
          if (listing.answer !== 'listed') return listing;
          const listed = new Set(listing.items.map(({ ref }) => ref));
          for (const ref of seen) if (!listed.has(ref)) missing.add(ref);
          for (const ref of listed) seen.add(ref);
          return listing;
        },
      };
    }),
  },
  {
    id: 'empty-account',
    simulation: 'orchestrator',
    title: 'an empty account is believed',
    commands: 100,
    plant: {
      file: 'src/orchestrator/platform/validate-listing.ts',
      anchor: 'if (missing >= LEAST_SUSPECT && missing > SUSPECT_SHARE * expected)',
      replacement:
        'if (missing === expected) return undefined;\n' +
        '  if (missing >= LEAST_SUSPECT && missing > SUSPECT_SHARE * expected)',
    },
  },
  {
    id: 'keys-unproved',
    simulation: 'orchestrator',
    title: 'an instance is ONLINE before its keys open its machine',
    plant: (ports) => {
      const { probe } = ports;
      if (probe === undefined) return ports;
      return { ...ports, probe: { probe: (target, _keys, ...rest) => probe.probe(target, [], ...rest) } };
    },
  },
  {
    id: 'loss-destroys',
    simulation: 'orchestrator',
    title: 'a machine that was concluded gone is removed when it reappears',
    plant: {
      file: 'src/orchestrator/steps/fail.ts',
      anchor: "as === 'create' ?",
      replacement: "as !== 'failure' ?",
    },
  },
  {
    id: 'lease-ignored',
    simulation: 'orchestrator',
    title: 'a step writes after losing its lease',
    commands: 100,
    plant: {
      file: 'src/orchestrator/steps/settle.ts',
      anchor: "if (check.state === 'lost') return check.state;",
      replacement:
        "if (check.state === 'lost') Object.assign(check, { state: 'held', deadlineAt: claimed.deadlineAt });",
    },
  },
  {
    id: 'delete-overwritten',
    simulation: 'orchestrator',
    title: 'a finished create overwrites a DELETE that arrived during it',
    plant: wrapTransactions((part, name, call, [lease]) => {
      if (part !== 'work' || name !== 'check') return call();
      const held = { state: 'held', deadlineAt: (lease as Lease).deadlineAt };
      return call().then((found) => ((found as LeaseCheck).state === 'superseded' ? held : found));
    }),
  },
  {
    id: 'synchronous',
    simulation: 'orchestrator',
    title: 'a commit is answered before it is on disk',
    plant: {
      file: 'src/store/sqlite/open-database.ts',
      anchor: "'synchronous = FULL'",
      replacement: "'synchronous = NORMAL'",
    },
  },
  {
    id: 'oversold',
    simulation: 'orchestrator',
    title: 'free capacity is counted before the transaction that claims it',
    plant: (ports) => {
      const { store } = ports;
      return {
        ...ports,
        store: {
          ...store,
          transact: async (body) => {
            const before = await store.read.claims.use();
            return store.transact((tx) =>
              body(
                interceptMethods(tx, (part, name, call, [claim]) => {
                  if (part !== 'claims' || name !== 'take') return call();
                  const wanted = claim as Claim;
                  const { offerId, region, capacity } = wanted;
                  const known = before.find((one) => one.offerId === offerId && one.region === region);
                  const isFree = (known?.claimed ?? 0) < capacity;
                  return call([{ ...wanted, capacity: isFree ? capacity + 100 : 0 }]);
                }),
              ),
            );
          },
        },
      };
    },
  },
  {
    id: 'resize-unclaimed',
    simulation: 'orchestrator',
    title: 'a volume grows without a claim on the storage',
    plant: {
      file: 'src/orchestrator/volumes/resize.ts',
      anchor: 'await claimStorage(tx, { catalog, supply }, volume, sizeGb);',
      replacement: '',
    },
  },
  {
    id: 'denial-on-doubt',
    simulation: 'orchestrator',
    title: 'when the store cannot tell, the answer is 404',
    commands: 100,
    plant: {
      file: 'src/http/api/errors.ts',
      anchor: 'const error = this.from(thrown, context.req);',
      replacement:
        'const isDoubt = thrown instanceof StoreUnavailable && /(inst|vol)-/.test(context.req.path);\n' +
        "const error = isDoubt ? this.notFound('planted') : this.from(thrown, context.req);",
    },
  },
  {
    id: 'pruned-early',
    simulation: 'orchestrator',
    title: 'tombstones are pruned as soon as their instances have ended',
    plant: wrapTransactions((part, name, call, [request]) => {
      if (part !== 'instances' || name !== 'prune') return call();
      return call([{ ...(request as object), endedBefore: Number.MAX_SAFE_INTEGER }]);
    }),
  },
  {
    id: 'cordon-ignored',
    simulation: 'orchestrator',
    title: 'a create takes a unit of a cordoned offer',
    plant: wrapTransactions((part, name, call) =>
      part === 'cordons' && name === 'list' ? Promise.resolve([]) : call(),
    ),
  },
  {
    id: 'hold-forgets',
    simulation: 'orchestrator',
    title: 'a machine held for the operator is forgotten when its hold ends',
    commands: 100,
    plant: {
      file: 'src/orchestrator/steps/instance/ended.ts',
      anchor: "return { step: 'destroy', because",
      replacement: "return { step: 'finish', because",
    },
  },
  {
    id: 'count-ignored',
    simulation: 'platforms',
    title: "the platform's count of free units is ignored",
    plant: wrapDrivers((driver) => ({
      ...(driver.inventory !== undefined && {
        inventory: async () => ({ answer: 'counted', free: [] }) as const,
      }),
    })),
  },
  {
    id: 'platforms-coupled',
    simulation: 'platforms',
    title: 'a platform is asked only after another has answered',
    plant: (ports) => {
      const [[, first] = []] = ports.drivers;
      if (first === undefined) return ports;
      const drivers = [...ports.drivers].map(([name, driver]) => {
        const list: typeof driver.list = async () => {
          const of = await first.list();
          return of.answer === 'unknown' || driver === first ? of : driver.list();
        };
        return [name, { ...driver, list }] as const;
      });
      return { ...ports, drivers: new Map(drivers) };
    },
  },
  {
    id: 'silent-host',
    simulation: 'hosts',
    title: 'what a silent host, or one that left the configuration, may have counts as gone',
    plant: wrapDrivers((driver) => ({
      get: async (ref): Promise<Presence<ObservedMachine>> => {
        const found = await driver.get(ref);
        return found.answer !== 'observed' && found.hosts !== undefined ? { answer: 'gone' } : found;
      },
      list: async () => {
        const listing = await driver.list();
        if (listing.answer !== 'listed') return listing;
        const { hosts: _, ...everywhere } = listing;
        return everywhere;
      },
    })),
  },
];
