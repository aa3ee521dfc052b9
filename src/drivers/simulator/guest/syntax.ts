/** One command of a line: its words, its output file, and whether it depends on the previous command. */
export interface GuestCommandLine {
  argv: string[];
  output: { path: string; append: boolean } | undefined;
  /** After `&&`: runs only if the previous command succeeded. */
  afterSuccess: boolean;
}

export class SyntaxProblem extends Error {
  override readonly name = 'SyntaxProblem';
}

const SEPARATORS = ['&&', ';', '\n'];
const NOT_SIMULATED = 'is not simulated; the guest supports plain commands, quotes, ";", "&&", ">" and ">>"';

/**
 * Parses commands separated by `;`, `&&` or line ends, with single and double quotes, `>` and `>>`. Expands nothing:
 * `$`, `*` and `~` are literal. Time and memory are linear in the length of the text.
 *
 * @throws {SyntaxProblem}
 */
export function parseCommandLine(text: string): GuestCommandLine[] {
  const commands: GuestCommandLine[] = [];
  let current: GuestCommandLine = { argv: [], output: undefined, afterSuccess: false };
  let redirect: '>' | '>>' | undefined;
  const end = (operator: string): void => {
    if (redirect !== undefined) throw unexpected(operator);
    const isEmpty = current.argv.length === 0 && current.output === undefined;
    if (isEmpty && (operator === '&&' || current.afterSuccess)) throw unexpected(operator);
    if (!isEmpty) commands.push(current);
    current = { argv: [], output: undefined, afterSuccess: operator === '&&' };
  };
  for (const token of tokens(text)) {
    if ('word' in token) {
      if (redirect === undefined) current.argv.push(token.word);
      else current.output = { path: token.word, append: redirect === '>>' };
      redirect = undefined;
    } else if (SEPARATORS.includes(token.operator)) end(token.operator);
    else if (redirect !== undefined || current.output !== undefined) throw unexpected(token.operator);
    else redirect = token.operator as '>' | '>>';
  }
  end('newline');
  return commands;
}

type Token = { word: string } | { operator: string };

function* tokens(text: string): Generator<Token> {
  // Sticky, so that each part is matched where the last one ended, without copying.
  const part =
    /(?<blank>[ \t\r]+)|(?<operator>&&|>>|[;>\n])|(?<word>(?:'[^']*'|"(?:[^"\\]|\\[\s\S])*"|\\[\s\S]|[^\s;|&<>'"\\()`])+)/y;
  let isAfterAnd = false;
  while (part.lastIndex < text.length) {
    const at = part.lastIndex;
    const groups = part.exec(text)?.groups;
    if (groups === undefined) throw unreadable(text.charAt(at));
    const { operator, word } = groups;
    // A line may end after `&&`.
    if (operator !== undefined && !(operator === '\n' && isAfterAnd)) yield { operator };
    if (word !== undefined) yield { word: unquote(word) };
    if (word !== undefined || (operator !== undefined && operator !== '\n')) isAfterAnd = operator === '&&';
  }
}

/** Inside double quotes a backslash escapes only `"`, `\`, `$`, a backquote and a line's end. */
function unquote(word: string): string {
  return word.replace(
    /'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|\\([\s\S])/g,
    (_, single: string | undefined, double: string | undefined, escaped: string | undefined) =>
      single ?? double?.replace(/\\(["\\$`])|\\\n/g, '$1') ?? escaped ?? '',
  );
}

function unreadable(character: string): SyntaxProblem {
  if (character === "'" || character === '"')
    return new SyntaxProblem(`unexpected EOF while looking for matching \`${character}'`);
  return new SyntaxProblem(`${JSON.stringify(character)} ${NOT_SIMULATED}`);
}

function unexpected(operator: string): SyntaxProblem {
  return new SyntaxProblem(
    `syntax error near unexpected token \`${operator === '\n' ? 'newline' : operator}'`,
  );
}
