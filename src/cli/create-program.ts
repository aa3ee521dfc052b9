import { Command } from 'commander';

/** `berth`, with its commands. A mistake on the command line is one sentence that says where the help is. */
export function createProgram(commands: readonly Command[], version: string): Command {
  // A flag after the name of a command is that command's, also where one above it has the same.
  const program = new Command('berth')
    .description('The reference provider orchestrator, and a marketplace on top of such')
    .version(version, '-V, --version', 'print the version')
    .enablePositionalOptions();
  for (const command of commands) program.addCommand(command);
  explainMistakes(program, 'berth');
  return program;
}

function explainMistakes(command: Command, name: string): void {
  command.exitOverride();
  command.configureOutput({
    outputError: (text, write) => {
      const [mistake = '', ...hints] = text
        .replace(/^error: /, '')
        .trim()
        .split('\n');
      const sentence = [mistake.replace(/\.$/, ''), ...hints].join(' ');
      write(`berth: ${sentence}: see \`${name} --help\`.\n`);
    },
  });
  for (const inner of command.commands) explainMistakes(inner, `${name} ${inner.name()}`);
}
