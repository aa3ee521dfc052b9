import type { Mutant } from './mutant.ts';

/**
 * L1 to L13 are the leaks that comparable projects had (docs/reliability.md): each mutant takes away what keeps one
 * of them out.
 */
export const leakMutants: readonly Mutant[] = [
  {
    id: 'L1',
    title: 'a create cut off by a crash counts as failed; what it made is forgotten',
    patches: [
      {
        file: 'src/orchestrator/steps/instance/create.ts',
        find: '  const before = await findEarlierCreate(',
        replace:
          "  if (lease.attempt > 1 && lease.cookie === null && lease.lastError === null)\n    return { outcome: 'failed', code: 'invalid', sideEffect: 'none', detail: 'it was cut off' };\n  const before = await findEarlierCreate(",
      },
      {
        file: 'src/orchestrator/steps/destroy.ts',
        find: 'const removal = await remove(context, lease, {\n    destroy: (cookie, call) => driver.',
        replace:
          "const removal = record.status === 'ERROR' && record.endpoint === null ? { step: { outcome: 'done', value: null } as const, found: { answer: 'gone', observedAt: context.clock.now() } as const, answeredAt: context.clock.now() } : await remove(context, lease, {\n    destroy: (cookie, call) => driver.",
      },
    ],
  },
  {
    id: 'L2',
    title: 'a removal is believed because the platform reports it as done',
    patches: [
      {
        file: 'src/orchestrator/steps/destroy.ts',
        find: 'found: isClaimedGone ? await removable.find() : undefined',
        replace: "found: isClaimedGone ? { answer: 'gone', observedAt: answeredAt } : undefined",
      },
    ],
  },
  {
    id: 'L3',
    title: 'a removal is given up after several refusals',
    patches: [
      {
        file: 'src/orchestrator/steps/destroy.ts',
        find: "if (found === undefined && step.outcome === 'failed') return",
        replace:
          "if (found === undefined && step.outcome === 'failed') return lease.attempt > 4 ? undefined :",
      },
    ],
  },
  {
    id: 'L4',
    title: 'a machine that is already gone cannot be removed',
    patches: [
      {
        file: 'src/orchestrator/steps/destroy.ts',
        find: "step.outcome === 'done' || (step.outcome === 'failed' && step.code === 'gone')",
        replace: "step.outcome === 'done'",
      },
    ],
  },
  {
    id: 'L5',
    title: 'a finished create overwrites a DELETE that arrived during it',
    patches: [
      {
        file: 'src/orchestrator/steps/settle.ts',
        find: "if (found === 'superseded') await tx.work.release(lease);\n    else {",
        replace: '{',
      },
    ],
  },
  {
    id: 'L6',
    title: 'any SSH server at the address is accepted as the machine',
    patches: [
      {
        file: 'src/orchestrator/steps/instance/verify.ts',
        find: 'spec.sshKeys, pinned)',
        replace: 'spec.sshKeys, undefined)',
      },
    ],
  },
  {
    id: 'L7',
    title: 'a database is served with the driver of another platform',
    patches: [
      {
        file: 'src/orchestrator/reconciliation/installation.ts',
        find: 'if (driver !== driverBefore)',
        replace: 'if (driver === undefined)',
      },
    ],
  },
  {
    id: 'L8',
    title: 'a machine missing from one listing counts as gone',
    patches: [
      {
        file: 'src/orchestrator/platform/confirm-gone.ts',
        find: 'return { ...(await proved(found, record.ownerRef, context.machines)), observedAt };',
        replace:
          "const lacked = await context.machines.confirmAbsent(record.ownerRef); return { ...(lacked.isProved ? ({ answer: 'gone' } as const) : found), observedAt };",
      },
    ],
  },
  {
    id: 'L9',
    title: 'a create without an answer is sent again elsewhere, under another ref',
    patches: [
      {
        file: 'src/orchestrator/steps/adopt-or-create.ts',
        find: "if (lease.cookie !== null || !(wasSent || isOlder)) return { answer: 'send' };",
        replace: "if (lease.attempt >= 0) return { answer: 'send' };",
      },
      {
        file: 'src/orchestrator/steps/instance/create.ts',
        find: 'const spec = toMachineSpec(context, record, avoidHosts);',
        replace:
          'const isAgain = lease.cookie === null && lease.lastError !== null;\n  const spec = { ...toMachineSpec(context, record, avoidHosts), ref: isAgain ? record.ownerRef.concat("-again") : record.ownerRef } as MachineSpec;',
      },
    ],
  },
  {
    id: 'L10',
    title: 'a failed start ends the instance',
    patches: [
      {
        file: 'src/orchestrator/steps/instance/start.ts',
        find: "return { step: 'stop' };",
        replace:
          "return failInstance(context, tx, record, { as: 'failure', cause: 'boot_failed', reason: 'it could not be started' });",
      },
      {
        file: 'src/orchestrator/steps/instance/verify.ts',
        find: "return { step: 'stop' };",
        replace:
          "return failInstance(context, tx, record, { as: 'failure', cause: 'boot_failed', reason: 'it could not be started' });",
      },
    ],
  },
  {
    id: 'L11',
    subject: 'libvirt',
    title: 'machines without a live row are never looked for',
    patches: [
      {
        file: 'src/orchestrator/reconciliation/sweep-machines.ts',
        find: 'const unowned = await this.#unowned(listed.items.values());',
        replace: 'const unowned: ObservedMachine[] = [];',
      },
      {
        file: 'src/orchestrator/reconciliation/record-rowless.ts',
        find: 'if (hasRow(ref)) continue;',
        replace: 'if (ref !== undefined) continue;',
      },
    ],
  },
  {
    id: 'L12',
    title: 'a create without an answer counts as failed',
    patches: [
      {
        file: 'src/orchestrator/steps/instance/create.ts',
        find: 'if (isRefused(failed))',
        replace: "if (isRefused(failed) || failed.code === 'unknown_outcome')",
      },
    ],
  },
  {
    id: 'L13',
    title: 'an empty account is believed',
    patches: [
      {
        file: 'src/orchestrator/platform/validate-listing.ts',
        find: 'if (missing >= LEAST_SUSPECT && missing > share * expected)',
        replace:
          'if (missing === expected) return undefined;\n  if (missing >= LEAST_SUSPECT && missing > share * expected)',
      },
    ],
  },
];
