import type { Command } from 'commander';
import { expect, it } from 'vitest';
import { commandsBelow, loadBerth, nameOf } from '../../test/documents/command-line.ts';

/** Every command of the suite is about a target, with its own flags and words. */
const commands = commandsBelow(await loadBerth()).filter(
  (one) => !nameOf(one).startsWith('berth conformance'),
);
const flagOf = (command: Command, long: string) => command.options.find((option) => option.long === long);

it('each command prints with -o json|yaml|wide, and --json', () => {
  // What ssh prints is the machine's.
  const leaves = commands.filter((one) => one.commands.length === 0 && nameOf(one) !== 'berth instances ssh');
  expect(leaves.length).toBeGreaterThan(50);
  const without = leaves.filter((command) => {
    const { short, argChoices } = flagOf(command, '--output') ?? {};
    const isJson = flagOf(command, '--json')?.attributeName() === 'output';
    return !isJson || short !== '-o' || argChoices?.join() !== 'table,wide,json,yaml';
  });
  expect(without.map(nameOf)).toEqual([]);
});

it.each(['--limit', '--json', '--output', '--yes', '--database', '--find'])(
  '%s is the same flag wherever it is',
  (long) => {
    const meanings = commands.flatMap((command) => {
      const option = flagOf(command, long);
      const isOwn = long === '--database' || long === '--find';
      return option === undefined ? [] : [isOwn ? option.flags : `${option.flags} ${option.description}`];
    });
    expect([...new Set(meanings)]).toHaveLength(1);
  },
);
