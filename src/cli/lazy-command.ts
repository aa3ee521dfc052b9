import { Command } from 'commander';

/** A command whose code is loaded only when it is called: `--help` needs its name and its description alone. */
export interface LazyCommand {
  name: string;
  description: string;
  load: () => Promise<Command>;
}

/** The commands, of which only those that `isCalled` names are loaded. */
export async function loadCommands(
  commands: readonly LazyCommand[],
  isCalled: (name: string) => boolean,
): Promise<Command[]> {
  return Promise.all(
    commands.map(async ({ name, description, load }) =>
      (isCalled(name) ? await load() : new Command(name)).description(description),
    ),
  );
}
