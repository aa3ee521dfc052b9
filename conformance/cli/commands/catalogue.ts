import { Command } from 'commander';
import { CHECKS } from '../../checks/index.ts';
import { loadRequirements } from '../../contract/requirements.ts';
import { explain, toList } from '../../report/explain.ts';
import { closestMatch } from '../../text/wording.ts';
import type { CliParts } from '../parts.ts';
import { CommandError } from '../program.ts';

/** `berth conformance list`. */
export function listCommand({ terminal }: CliParts): Command {
  return new Command('list')
    .alias('ls')
    .description('list every requirement, and the level that tests it')
    .option('--json', 'as JSON')
    .action(({ json }: { json?: true }) => {
      const { rows } = loadRequirements();
      terminal.out(json ? `${JSON.stringify(rows.map(toRow), null, 2)}\n` : toList(rows, CHECKS));
    });
}

/** `berth conformance explain <id>`. */
export function explainCommand({ terminal }: CliParts): Command {
  return new Command('explain')
    .description('explain a requirement: what it means, how it is tested, and the usual cause of a failure')
    .argument('<id>', 'such as INS-404-001; see `list`')
    .option('--json', 'as JSON')
    .action((given: string, { json }: { json?: true }) => {
      const { rows } = loadRequirements();
      const id = given.trim().toUpperCase();
      const requirement =
        rows.find((row) => row.id === id) ?? rows.find(({ checks }) => checks?.includes(id));
      if (requirement === undefined)
        throw new CommandError(
          unknownId(
            given,
            rows.map((row) => row.id),
          ),
        );
      terminal.out(json ? `${JSON.stringify(toRow(requirement), null, 2)}\n` : explain(requirement, CHECKS));
    });
}

type Row = ReturnType<typeof loadRequirements>['rows'][number];

/** A requirement, with the checks that prove it. */
function toRow(requirement: Row) {
  const { checks = [] } = requirement;
  return {
    ...requirement,
    checks: CHECKS.filter(({ id }) => checks.includes(id)).map(({ id, level, scenarios }) => ({
      id,
      level,
      scenarios,
    })),
  };
}

function unknownId(given: string, known: readonly string[]): string {
  const meant = closestMatch(given, known);
  const hint = meant === undefined ? '`berth conformance list` shows all ids' : `did you mean ${meant}?`;
  return `there is no requirement ${given}: ${hint}`;
}
