import type { Mutant } from './mutant.ts';

/** What keeps users from paying twice, for nothing, or for what they lost; each mutant takes one of them away. */
export const marketplaceMutants: readonly Mutant[] = [
  {
    id: 'gone-at-once',
    subject: 'marketplace',
    title: 'one 404 ends a deployment',
    patches: [
      {
        file: 'src/marketplace/deployments/observe.ts',
        find: '  const { suspicion } = record;\n  const isAgain',
        replace:
          "  if (isListed !== true) return over(record, record.observedAt ?? record.createdAt, '404');\n  const { suspicion } = record;\n  const isAgain",
      },
    ],
  },
  {
    id: 'create-again',
    subject: 'marketplace',
    title: 'a create without an answer is sent again',
    patches: [
      {
        file: 'src/marketplace/sync/launch.ts',
        find: 'if (made.mayHaveHappened) return FIRST_SEARCH_MS;',
        replace: 'if (made.mayHaveHappened) return revertToWanted(context, record);',
      },
    ],
  },
  {
    id: 'no-sweep',
    subject: 'marketplace',
    title: 'machines without a live deployment are never looked for',
    patches: [
      {
        file: 'src/marketplace/sync/sweep.ts',
        find: 'if (before.has(instance.id)) await',
        replace: 'if (instance.id === undefined) await',
      },
    ],
  },
  {
    id: 'blink',
    subject: 'marketplace',
    title: 'a dedicated machine that twice reads stopped or leaving is believed',
    patches: [
      {
        file: 'src/marketplace/deployments/observe.ts',
        find: 'before === undefined || now - before.since < polling.blinkMs',
        replace: 'before === undefined',
      },
    ],
  },
  {
    id: 'beyond-observed',
    subject: 'marketplace',
    title: 'time that the provider has not confirmed is billed',
    patches: [
      {
        file: 'src/marketplace/ledger/accrue.ts',
        find: 'return Math.min(now, confirmedUntil ?? Number.NEGATIVE_INFINITY);',
        replace: 'return now;',
      },
    ],
  },
  {
    id: 'cut-confirms',
    subject: 'marketplace',
    title: 'a truncated page of changes confirms what it does not list',
    patches: [
      {
        file: 'src/client/follow-changes.ts',
        find: 'if (!isCut) asOf = askedAt;',
        replace: 'asOf = askedAt;',
      },
    ],
  },
  {
    id: 'listed-unchanged',
    subject: 'marketplace',
    title: 'an instance listed as changed counts as unchanged',
    patches: [
      {
        file: 'src/marketplace/sync/changes-feed.ts',
        find: 'this.#listedAt.get(providerInstanceId) ?? 0',
        replace: '0',
      },
    ],
  },
  {
    id: 'key-kept',
    subject: 'marketplace',
    title: 'the temporary key outlives its deployment',
    patches: [
      {
        file: 'src/marketplace/deployments/transition.ts',
        find: 'if (record.tempSshKeyId !== null) await tx.sshKeys.remove(record.tempSshKeyId);',
        replace: '',
      },
    ],
  },
  {
    id: 'poll-time',
    subject: 'marketplace',
    title: 'a stop counts from when it was noticed',
    patches: [
      {
        file: 'src/marketplace/deployments/observe.ts',
        find: "return { kind: 'change', to: 'stopped', at: changedAt(observed), facts: {}, why: 'it is STOPPED' };",
        replace:
          "return { kind: 'change', to: 'stopped', at: observed.seenAt, facts: {}, why: 'it is STOPPED' };",
      },
    ],
  },
  {
    id: 'early-bill',
    subject: 'marketplace',
    title: 'a machine counts as running and is billed before its user can log in',
    patches: [
      {
        file: 'src/marketplace/deployments/apply-observation.ts',
        find: 'if (endpoint === null || sshProof?.provedEndpoint === toSshAddress(endpoint)) return null;',
        replace:
          'if (endpoint === null || sshProof?.provedEndpoint !== undefined || toSshAddress(endpoint)) return null;',
      },
    ],
  },
  {
    id: 'late-discount',
    subject: 'marketplace',
    title: 'a discount that changes between two slices counts from the next slice',
    patches: [
      {
        file: 'src/marketplace/ledger/price-change.ts',
        find: 'for (const at of [from, ...changesAfter(discounts, from)]) {',
        replace: 'for (const at of [from]) {',
      },
    ],
  },
  {
    id: 'rounded-slices',
    subject: 'marketplace',
    title: 'each slice is rounded separately',
    patches: [
      {
        file: 'src/marketplace/ledger/segments.ts',
        find: 'const amountMicroUsd = owedOf(segment, until);',
        replace:
          'const amountMicroUsd = owedOf({ ...segment, startedAt: segment.postedUntil, postedMicroUsd: 0 }, until);',
      },
    ],
  },
  {
    id: 'delete-forgotten',
    subject: 'marketplace',
    title: 'a volume deletion without an answer counts as refused',
    patches: [
      {
        file: 'src/marketplace/sync/volumes/deletion.ts',
        find: 'if (!isUnsent(action)) return accept(context, record);',
        replace:
          'if (!isUnsent(action)) return void (await refuse(context, { ...snapshot, record: { ...record, action } }, stillAttached([])));',
      },
    ],
  },
  {
    id: 'delete-unproved',
    subject: 'marketplace',
    title: 'a volume counts as deleted before its provider proves it',
    patches: [
      {
        file: 'src/marketplace/sync/volumes/deletion.ts',
        find: "if (volume.status !== 'DELETING') await client.getVolume(providerVolumeId, call);",
        replace: "if (volume.status === 'DELETING') return endDeletion(context, record);",
      },
    ],
  },
  {
    id: 'loss-deletes',
    subject: 'marketplace',
    title: 'the machine of a deployment ended by a 404 is deleted',
    patches: [
      {
        file: 'src/marketplace/deployments/transition.ts',
        find: "cleanup: mayExist && !isLoss ? 'wanted' : moved.cleanup,",
        replace: "cleanup: mayExist ? 'wanted' : moved.cleanup,",
      },
    ],
  },
  {
    id: 'shared-instance',
    subject: 'marketplace',
    title: 'an instance of another deployment is assigned again',
    patches: [
      {
        file: 'src/marketplace/sync/launch.ts',
        find: 'if (isTaken) return',
        replace: 'if (isTaken && record === undefined) return',
      },
    ],
  },
  {
    id: 'losses-uncapped',
    subject: 'marketplace',
    title: 'a provider that denies everything ends everything',
    patches: [
      {
        file: 'src/marketplace/providers/loss-cap.ts',
        find: '(losses.count < losses.cap && othersHeld === 0)',
        replace: 'losses.count >= 0',
      },
    ],
  },
  {
    id: 'roll-up-drops-last',
    subject: 'marketplace',
    title: 'a roll-up leaves out the last slice of the day',
    patches: [
      {
        file: 'src/store/marketplace/queries/roll-up.ts',
        find: 'lte(slices.sliceEnd, endsAt)',
        replace: `sql\`\${slices.sliceEnd} < \${endsAt}\``,
      },
    ],
  },
  {
    id: 'roll-up-open-day',
    subject: 'marketplace',
    title: 'a day is rolled up before it ends, and again later',
    patches: [
      {
        file: 'src/marketplace/ledger/roll-up.ts',
        find: 'const until = Math.floor((startedAt - afterMs) / periodMs) * periodMs;',
        replace: 'const until = startedAt;',
      },
      {
        file: 'src/store/marketplace/queries/roll-up.ts',
        find: `\${segments.endedAt} IS NOT NULL`,
        replace: `\${segments.startedAt} IS NOT NULL`,
      },
    ],
  },
  {
    id: 'roll-up-charges',
    subject: 'marketplace',
    title: 'a roll-up charges the balance a second time',
    patches: [
      {
        file: 'src/store/marketplace/queries/postings.ts',
        find: 'if (lines.length === 0) return;\n  await insertBookings(',
        replace: 'if (lines.length === 0) return;\n  await book(',
      },
    ],
  },
];
