/** A piece of a word: `$NAME` and `$?` are replaced where `expands`. */
interface WordPart {
  text: string;
  expands: boolean;
}
export type Word = WordPart[];

export interface Redirection {
  operator: '>' | '>>' | '2>' | '2>>' | '&>' | '<' | '2>&1' | '>&2';
  /** Empty for `2>&1` and `>&2`. */
  target: Word;
}

export interface SimpleCommand {
  words: Word[];
  redirections: Redirection[];
}

export interface Pipeline {
  /** What must be true of the status so far for it to run. */
  when: 'always' | 'succeeded' | 'failed';
  commands: SimpleCommand[];
}

/** A command line that no shell accepts, in bash's words. */
export class SyntaxProblem extends Error {
  override readonly name = 'SyntaxProblem';
}

type Token = { word: Word } | { operator: string };

const OPERATOR = /^(?:&&|\|\||2>&1|1?>&2|&>|2>>|2>|1?>>|1?>|<|;|\||\n|&)/;
const separators: Record<string, Pipeline['when']> = {
  '&&': 'succeeded',
  '||': 'failed',
  ';': 'always',
  '\n': 'always',
};

/** Reads a command line: lists with `;`, `&&` and `||`, pipes, quotes, redirections, comments. @throws {SyntaxProblem} */
export function parseCommandLine(text: string): Pipeline[] {
  const pipelines: Pipeline[] = [];
  let command = emptyCommand();
  let pipeline: Pipeline = { when: 'always', commands: [] };
  const tokens = tokenize(text);

  const endCommand = (operator: string): void => {
    if (isEmpty(command)) throw unexpected(operator);
    pipeline.commands.push(command);
    command = emptyCommand();
  };
  const endPipeline = (operator: string): void => {
    const mayBeEmpty = operator === '\n' && pipeline.commands.length === 0 && isEmpty(command);
    if (!mayBeEmpty) {
      endCommand(operator);
      pipelines.push(pipeline);
    }
    // A line that ends after && or || goes on.
    const when = mayBeEmpty ? pipeline.when : (separators[operator] ?? 'always');
    pipeline = { when, commands: [] };
  };

  for (let token = tokens.shift(); token !== undefined; token = tokens.shift()) {
    if ('word' in token) command.words.push(token.word);
    else if (token.operator === '|') endCommand('|');
    else if (token.operator in separators) endPipeline(token.operator);
    else command.redirections.push(toRedirection(token.operator, tokens));
  }
  const isOpen = !isEmpty(command) || pipeline.commands.length > 0;
  if (isOpen) endPipeline('newline');
  else if (pipeline.when !== 'always') throw new SyntaxProblem('syntax error: unexpected end of file');
  return pipelines;
}

function emptyCommand(): SimpleCommand {
  return { words: [], redirections: [] };
}

function isEmpty(command: SimpleCommand): boolean {
  return command.words.length === 0 && command.redirections.length === 0;
}

function unexpected(operator: string): SyntaxProblem {
  return new SyntaxProblem(
    `syntax error near unexpected token \`${operator === '\n' ? 'newline' : operator}'`,
  );
}

function toRedirection(operator: string, tokens: Token[]): Redirection {
  if (operator === '2>&1') return { operator, target: [] };
  if (operator.endsWith('>&2')) return { operator: '>&2', target: [] };
  if (operator === '&') throw unexpected(operator);
  const target = tokens.shift();
  if (target === undefined || !('word' in target)) throw unexpected(target?.operator ?? 'newline');
  return { operator: operator.replace(/^1/, '') as Redirection['operator'], target: target.word };
}

function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  let rest = text.replaceAll('\r\n', '\n');
  while (rest !== '') {
    const [blank] = /^(?:[ \t]|\\\n|#[^\n]*)+/.exec(rest) ?? [''];
    const [operator] = blank === '' ? (OPERATOR.exec(rest) ?? ['']) : [''];
    if (blank !== '') {
      rest = rest.slice(blank.length);
    } else if (operator !== '') {
      tokens.push({ operator });
      rest = rest.slice(operator.length);
    } else {
      const { word, length } = readWord(rest);
      tokens.push({ word });
      rest = rest.slice(length);
    }
  }
  return tokens;
}

/** Reads the word that `text` begins with. */
function readWord(text: string): { word: Word; length: number } {
  const word: Word = [];
  let at = 0;
  for (;;) {
    const rest = text.slice(at);
    const part =
      /^'([^']*)'/.exec(rest) ??
      /^"((?:[^"\\]|\\[\s\S])*)"/.exec(rest) ??
      /^\\([\s\S])/.exec(rest) ??
      /^[^\s;|&<>'"\\]+/.exec(rest);
    if (part === null) break;
    const [whole, inner] = part;
    if (whole.startsWith('"')) word.push(...quotedParts(inner ?? ''));
    else word.push({ text: inner ?? whole, expands: inner === undefined });
    at += whole.length;
  }
  const [quote] = /^['"]/.exec(text.slice(at)) ?? [];
  if (quote !== undefined) throw new SyntaxProblem(`unexpected EOF while looking for matching \`${quote}'`);
  if (at === 0) throw unexpected(text[0] ?? 'newline');
  return { word, length: at };
}

/** Inside double quotes a backslash escapes only `"`, `\`, `$`, a backquote and a line's end. */
function quotedParts(inner: string): Word {
  const pieces = inner.split(/(\\["\\$`\n])/);
  return pieces.map((piece, index) =>
    index % 2 === 0
      ? { text: piece, expands: true }
      : { text: piece === '\\\n' ? '' : piece.slice(1), expands: false },
  );
}
