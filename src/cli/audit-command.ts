import { Command } from 'commander';
import { type AuditView, listAudit } from '../operator-kit/views/audit.ts';
import type { OnOperators } from './operators-command.ts';
import { onDatabase } from './orchestrator-database.ts';
import {
  type Column,
  fieldColumns,
  isData,
  type ListFlags,
  printData,
  printRecords,
  toReadLimit,
  withList,
} from './print-records.ts';

interface Flags extends ListFlags {
  actor?: string;
  action?: string;
  subject?: string;
}

export function auditCommand(): Command {
  return auditCommandOn(onDatabase);
}

/** Lists the actions of operators, for the product whose database `on` opens. */
export function auditCommandOn(on: OnOperators): Command {
  const audit = new Command('audit');
  withList(
    on(audit.command('ls'), async ({ store: { read } }, flags: Flags & { limit: number }) => {
      const { actor, action, subject, limit } = flags;
      const { entries } = await listAudit(read, { actor, action, subject, limit: toReadLimit(flags) });
      if (isData(flags)) printData(flags, entries.slice(0, limit));
      else printRecords(entries, columns, flags, 'The audit log has no such entry.');
    }),
    50,
  )
    .option('--actor <name>', 'only actions of this operator')
    .option('--action <name>', 'only this kind of action, such as alarm.acknowledge')
    .option('--subject <name>', 'only actions on this subject, such as the id of an instance')
    .description('list actions of operators: who, from where, and the outcome, the newest first');
  return audit;
}

const columns: readonly Column<AuditView>[] = [
  ...fieldColumns<AuditView>({
    TIME: 'at',
    ACTOR: 'actor',
    SOURCE: 'source',
    ADDRESS: 'address',
    ACTION: 'action',
    SUBJECT: 'subject',
    OUTCOME: 'outcome',
  }),
  { head: 'DETAIL', key: 'detail', value: ({ detail }) => toText(detail), none: '' },
];

function toText(detail: AuditView['detail']): string {
  return Object.entries(detail)
    .map(([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(' ');
}
