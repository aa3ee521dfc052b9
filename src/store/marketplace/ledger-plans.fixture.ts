import { posting, segment, teamId, usage } from '../../../test/support/rows/marketplace-rows.ts';
import type { LedgerReader, LedgerWriter } from '../../marketplace/model/ledger-store.ts';

/** Tables that grow with the marketplace's use. No everyday statement reads all of one. */
export const growing = [
  'segments',
  'slices',
  'day_lines',
  'ledger_transactions',
  'ledger_entries',
  'deployments',
];

const subject = 'dep-1';
const page = { afterId: 'a', limit: 9 };
const days = { until: 5, periodMs: 86_400_000, limit: 9 };

/** All statements of the ledger except the audits. */
export const ledgerReads: readonly ((ledger: LedgerReader) => Promise<unknown>)[] = [
  (ledger) => ledger.segmentById('seg-1'),
  (ledger) => ledger.segmentsOf('deployment', subject),
  (ledger) => ledger.openSegmentOf('deployment', subject),
  (ledger) => ledger.openSegmentsOfTeam(teamId),
  (ledger) => ledger.openSegmentsOfDeployments([subject]),
  (ledger) => ledger.openSegments(page),
  (ledger) => ledger.billedSegmentsOfTeam(teamId),
  (ledger) => ledger.dueSegments({ now: 5, limit: 9 }),
  (ledger) => ledger.dueSegments({ now: 5, after: { at: 1, id: 'seg-1' }, limit: 9 }),
  (ledger) => ledger.slicesOf('seg-1'),
  (ledger) => ledger.daysOf('seg-1'),
  (ledger) => ledger.toRollUp(days),
  (ledger) => ledger.toRollUp({ ...days, after: { segmentId: 'seg-1', sliceEnd: 4 } }),
  (ledger) => ledger.sumSlices({ segmentIds: ['seg-1'], startsAt: 0, endsAt: 5 }),
  (ledger) => ledger.transactionsOf(teamId, 9),
  (ledger) => ledger.byReference('payment'),
  (ledger) => ledger.usageOf(teamId, 0, 5),
];

export const ledgerWrites: readonly ((ledger: LedgerWriter) => Promise<unknown>)[] = [
  (ledger) => ledger.insertSegment(segment({ id: 'seg-9', subjectId: 'dep-9' })),
  (ledger) => ledger.updateSegment(segment({ id: 'seg-9', subjectId: 'dep-9' })),
  (ledger) => ledger.lockBilled([segment()]),
  (ledger) =>
    ledger.post([posting(5, segment().startedAt + 1, { id: 'txn-9', subjectId: 'dep-9' }, 'seg-9')]),
  (ledger) => ledger.book(...usage(5, { id: 'txn-8' })),
];
