/** A line of an example file: a key, also one that is commented out, or prose about the next key. */
const KEY = /^( *)(- )?([a-z_0-9]+):(?: +(.*))?$/;

/**
 * What the comments of an example file say of each key, by its path: `server.port`, `providers[].id`. A key of a driver is
 * below `platform(DRIVER)`. `isKey` tells a key that is commented out from prose with a colon.
 */
export function describedKeys(text: string, isKey: (path: string) => boolean): Map<string, string> {
  const described = new Map<string, string>();
  let above: { indent: number; path: string }[] = [];
  let prose: string[] = [];
  const lines = text.split('\n').map(uncomment);
  for (const [index, { indent, content, isComment }] of lines.entries()) {
    if (content === '' && !isComment) {
      prose = [];
      continue;
    }
    const key = toKey(indent, content);
    const outer = above.filter((one) => key !== undefined && one.indent < key.indent);
    const path = key && pathOf(outer.at(-1)?.path ?? '', key, driverAfter(lines.slice(index)));
    if (key === undefined || path === undefined || (isComment && !isKey(path))) {
      if (isComment) prose.push(content);
      continue;
    }
    if (prose.length > 0 && !described.has(path)) described.set(path, prose.join(' ').trim());
    above = [...outer, { indent: key.indent, path }];
    prose = [];
  }
  return described;
}

/** `content` stands at `indent`, as if it were not commented out: once, or twice where a section is. */
function uncomment(line: string): { indent: number; content: string; isComment: boolean } {
  const isComment = /^ *#/.test(line);
  const plain = line.replace(/^( *)# ?/, '$1').replace(/^( *)# ?/, '$1');
  return { indent: plain.search(/\S|$/), content: plain.trim(), isComment };
}

interface Key {
  indent: number;
  name: string;
  isItem: boolean;
}

function toKey(indent: number, content: string): Key | undefined {
  const [, , item, name] = KEY.exec(content) ?? [];
  if (name === undefined) return undefined;
  return { indent: indent + (item === undefined ? 0 : 2), name, isItem: item !== undefined };
}

function pathOf(above: string, { name }: Key, driver: string): string {
  if (above === '') return name === 'platform' ? `platform(${driver})` : name;
  return `${above}.${name}`;
}

/** The driver that the section beginning with these lines is about. */
function driverAfter(lines: readonly { content: string }[]): string {
  const [, name = 'simulator'] =
    lines
      .slice(1, 4)
      .map(({ content }) => /^driver: (\w+)/.exec(content))
      .find(Boolean) ?? [];
  return name;
}
