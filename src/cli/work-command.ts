import { Command } from 'commander';
import type { OpenWork } from '../orchestrator/model/work.ts';
import { printLine } from '../runtime/print.ts';
import { onDatabase } from './orchestrator-database.ts';
import { parseCount } from './parse.ts';
import { type Column, type JsonFlag, printRecords, toJsonTime, withJson } from './print-records.ts';

/** `berth work`: the steps that are not finished. */
export function workCommand(): Command {
  const work = new Command('work');
  withJson(
    onDatabase(
      work.command('ls'),
      async ({ store: { read }, clock }, flags: JsonFlag & { limit: string }) => {
        const open = await read.work.list(parseCount('--limit', flags.limit));
        if (open.length === 0 && flags.json === undefined) return printLine('No work is open.');
        printRecords(open, columnsAt(clock.now()), flags);
      },
    ),
  )
    .option('--limit <count>', 'how many', '100')
    .description('list the steps that are not finished, those that have waited longest first');
  return work;
}

function columnsAt(now: number): readonly Column<OpenWork>[] {
  return [
    { head: 'RESOURCE', key: 'resource', value: ({ resourceId }) => resourceId },
    { head: 'STEP', key: 'step', value: ({ kind }) => kind },
    { head: 'PLATFORM', key: 'platform', value: ({ platform }) => platform },
    { head: 'ATTEMPT', key: 'attempt', value: ({ attempt }) => attempt },
    { head: 'WAITS SINCE', key: 'waits_since', value: ({ waitsSince }) => toJsonTime(waitsSince) },
    { head: 'NEXT TRY', key: 'next_try_at', value: ({ notBefore }) => toJsonTime(notBefore) },
    { head: 'DEADLINE', key: 'deadline_at', value: ({ deadlineAt }) => toJsonTime(deadlineAt) },
    { head: 'RUNS NOW', key: 'runs_now', value: ({ leaseUntil }) => leaseUntil > now },
    { head: 'HELD', key: 'held', value: ({ isHeld }) => isHeld },
    { head: 'LAST PROBLEM', key: 'last_problem', value: ({ lastError }) => lastError, none: '' },
  ];
}
