import type { Mutant } from './mutant.ts';

export const orchestratorMutants: readonly Mutant[] = [
  {
    id: 'late-create',
    title: 'a row counts as gone while an interrupted create may still make its machine',
    patches: [
      {
        file: 'src/orchestrator/steps/destroy.ts',
        find: 'return waitMs > 0\n    ? { step:',
        replace: 'return waitMs > Number.MAX_VALUE\n    ? { step:',
      },
    ],
  },
  {
    id: 'visibility',
    title: 'once a create is answered, Berth forgets that the platform may not show the machine yet',
    patches: [
      {
        file: 'src/orchestrator/steps/adopt-or-create.ts',
        find: "if (attempted.outcome === 'done') return () => now;",
        replace: "if (attempted.outcome === 'done') return () => null;",
      },
    ],
  },
  {
    id: 'volume-visibility',
    title: 'once a create is answered, Berth forgets that the platform may not show the volume yet',
    patches: [
      {
        file: 'src/orchestrator/steps/volume/create.ts',
        find: 'visibility: afterCreate(attempted, lease, context.clock.now())',
        replace: "visibility: attempted.outcome === 'done' ? () => null : (known: number | null) => known",
      },
    ],
  },
  {
    id: 'look',
    title: 'a create without an answer is repeated without looking for its machine',
    patches: [
      {
        file: 'src/orchestrator/steps/adopt-or-create.ts',
        find: "if (lease.cookie !== null || !(wasSent || isOlder)) return { answer: 'send' };",
        replace: "if (lease.attempt >= 0) return { answer: 'send' };",
      },
    ],
  },
  {
    id: 'fencing',
    title: 'a step writes after losing its lease',
    patches: [
      { file: 'src/orchestrator/steps/settle.ts', find: "if (found === 'lost') return found;", replace: '' },
    ],
  },
  {
    id: 'synchronous',
    title: 'a commit is answered before it is on disk',
    patches: [
      {
        file: 'src/store/sqlite/open-database.ts',
        find: "db.pragma('synchronous = FULL');",
        replace: "db.pragma('synchronous = NORMAL');",
      },
    ],
  },
  {
    id: 'claim-outside',
    title: 'free capacity is counted before the transaction that claims it',
    patches: [
      {
        file: 'src/orchestrator/instances/create.ts',
        find: '  return deps.store.transact(async (tx) => {\n    await assertHasAccess(',
        replace:
          '  const use = await deps.store.read.claims.use();\n  deps = { ...deps, use };\n  return deps.store.transact(async (tx) => {\n    await assertHasAccess(',
      },
      {
        file: 'src/orchestrator/instances/create.ts',
        find: '{ catalog, manifests, clock, random, platform, quotas }: Deps,',
        replace: '{ catalog, manifests, clock, random, platform, quotas, use }: any,',
      },
      {
        file: 'src/orchestrator/instances/create.ts',
        find: '{ offer, region, instanceId: id });',
        replace: '{ offer, region, instanceId: id, use } as any);',
      },
      {
        file: 'src/orchestrator/capacity/claim-unit.ts',
        find: '{ instanceId, ...wanted }: Wanted & { instanceId: string },',
        replace: '{ instanceId, use: before, ...wanted }: any,',
      },
      {
        file: 'src/orchestrator/capacity/claim-unit.ts',
        find: 'capacity: sellableUnits(stock, wanted) })',
        replace:
          'capacity: before === undefined ? sellableUnits(stock, wanted) : (before.find((e: any) => e.offerId === offer.id && e.region === region)?.claimed ?? 0) < sellableUnits(stock, wanted) ? 1_000 : 0 })',
      },
    ],
  },
  {
    id: 'resize-lost',
    title: 'a volume resize without an answer counts as refused',
    patches: [
      {
        file: 'src/orchestrator/steps/volume/resize.ts',
        find: 'const reason = giveUpReason(',
        replace:
          "const reason = step.outcome === 'failed' && step.sideEffect !== 'none' ? 'no answer' : giveUpReason(",
      },
      {
        file: 'src/orchestrator/steps/volume/resize.ts',
        find: "found?.answer === 'observed' && (found.value.sizeGb ?? 0) >= resize.sizeGb;",
        replace: 'false;',
      },
    ],
  },
  {
    id: 'resize-unclaimed',
    title: 'a volume grows without a claim on the storage',
    patches: [
      {
        file: 'src/orchestrator/volumes/resize.ts',
        find: 'await claimStorage(tx, { catalog, platform }, volume, sizeGb);',
        replace: '',
      },
    ],
  },
  {
    id: 'denial-on-doubt',
    title: 'when the store cannot tell, the answer is 404',
    patches: [
      {
        file: 'src/http/api/errors.ts',
        find: 'const error = this.from(thrown, context.req);',
        replace:
          "const isInconclusive = thrown instanceof StoreUnavailable && /\\/(inst|vol)-/.test(context.req.path);\n    const error = isInconclusive ? this.notFound('There is no such resource.') : this.from(thrown, context.req);",
      },
    ],
  },
  {
    id: 'pruned-by-creation',
    title: 'a tombstone is pruned by the age of its instance, not by the time since its end',
    patches: [
      {
        file: 'src/store/queries/instances.ts',
        find: 'lt(instances.updatedAt, endedBefore),',
        replace: 'lt(instances.createdAt, endedBefore),',
      },
    ],
  },
  {
    id: 'cordon-ignored',
    title: 'a create takes a unit of a cordoned offer',
    patches: [
      {
        file: 'src/orchestrator/instances/create.ts',
        find: 'claimUnit(tx, { catalog, platform, cordons }, {',
        replace: 'claimUnit(tx, { catalog, platform, cordons: [] }, {',
      },
    ],
  },
  {
    id: 'count-ignored',
    subject: 'platforms',
    title: "the platform's count of free units is ignored",
    patches: [
      {
        file: 'src/orchestrator/capacity/deployable.ts',
        find: 'stock.platform.platformUnits(offer, region) ?? ofCatalog',
        replace: 'ofCatalog',
      },
    ],
  },
  {
    id: 'half-made',
    subject: 'platforms',
    title: 'when a later call of a create is refused, what its first calls made is forgotten',
    patches: [
      {
        file: 'src/orchestrator/steps/instance/create.ts',
        find: 'if (isRefused(failed))',
        replace:
          "if (isRefused(failed) && failed.sideEffect === 'none') {\n    await failCreate(context, tx, record, 'image_missing', 'it could not be made');\n    return { step: 'finish' };\n  }\n  if (isRefused(failed))",
      },
      {
        file: 'src/orchestrator/reconciliation/sweep-machines.ts',
        find: "if (status === undefined || status === 'ERROR' || status === 'OFFLINE')",
        replace: 'if (status === undefined)',
      },
    ],
  },
  {
    id: 'hold-forgets',
    title: 'a machine held for the operator is forgotten when its hold ends',
    patches: [
      {
        file: 'src/orchestrator/steps/instance/hold.ts',
        find: "return { step: 'destroy' }",
        replace: "return { step: 'finish' }",
      },
    ],
  },
  {
    id: 'listing-of-another',
    subject: 'platforms',
    title: 'the rows of a platform are compared with the listing of the first one',
    patches: [
      {
        file: 'src/compose/orchestrator/orchestrator.ts',
        find: 'return composeWork(name, state, others, {',
        replace:
          'const [first]: any = platforms.values();\n    return composeWork(name, { ...state, driver: { ...state.driver, list: first.driver.list } }, others, {',
      },
    ],
  },
  {
    id: 'sold-by-another',
    subject: 'platforms',
    title: 'an offer is sold while the first platform answers, whatever its own does',
    patches: [
      {
        file: 'src/compose/orchestrator/platforms.ts',
        find: 'const state = states.get(platform);\n      return state?.health',
        replace: 'const [state] = states.values();\n      return state?.health',
      },
    ],
  },
  {
    id: 'unknown-host',
    subject: 'hosts',
    title: 'machines on a host that was renamed silently, or left the configuration, count as gone',
    patches: [
      {
        file: 'src/orchestrator/platform/asked-hosts.ts',
        find: 'return host === null ? silent.size > 0 : !answered.has(host);',
        replace: 'return host !== null && silent.has(host);',
      },
    ],
  },
  {
    id: 'moved-by-hand',
    subject: 'hosts',
    title: "a delete trusts the machine's last known host while the host that it was moved to is silent",
    patches: [
      {
        file: 'src/orchestrator/platform/confirm-gone.ts',
        find: 'if (cannotBeElsewhere)',
        replace: 'if (cannotBeElsewhere || true)',
      },
    ],
  },
  {
    id: 'frozen-by-another',
    subject: 'platforms',
    title: 'one silent platform stops the work of all',
    patches: [
      {
        file: 'src/compose/orchestrator/orchestrator.ts',
        find: 'return composeWork(name, state, others, {',
        replace:
          'const all: any = [...platforms.values()];\n    const health = new Proxy(state.health, { get: (of: any, key) => key === "isUp" ? all.every((s: any) => s.health.isUp) : typeof of[key] === "function" ? of[key].bind(of) : of[key] });\n    return composeWork(name, { ...state, health }, others, {',
      },
    ],
  },
];
