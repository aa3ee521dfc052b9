import {
  type XmlElement as ParsedElement,
  parseXml as parse,
  XmlDocumentType,
  XmlText,
} from '@rgrove/parse-xml';

/** An XML element as data. Names include their prefix. */
export interface XmlElement {
  name: string;
  attributes: Readonly<Record<string, string>>;
  children: readonly (XmlElement | string)[];
}

type Attributes = Readonly<Record<string, string | number | undefined>>;

/** Text that XML cannot contain, or text that is not XML. */
export class XmlError extends Error {
  override readonly name = 'XmlError';
}

/** Makes an element. Undefined attributes are omitted. */
export function element(
  name: string,
  attributes: Attributes = {},
  children: readonly (XmlElement | string)[] = [],
): XmlElement {
  const given = Object.entries(attributes).filter(([, value]) => value !== undefined);
  return {
    name,
    attributes: Object.fromEntries(given.map(([key, value]) => [key, String(value)])),
    children,
  };
}

const NAME = /^[A-Za-z_][\w.-]*(:[A-Za-z_][\w.-]*)?$/;
/** XML 1.0, section 2.2: any character that is not a `Char`, including a lone surrogate. */
const NO_CHARACTER = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/u;

export const isXmlText = (text: string): boolean => !NO_CHARACTER.test(text);

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
  '\t': '&#9;',
  '\n': '&#10;',
  '\r': '&#13;',
};
const escaped = (character: string): string => ESCAPES[character] ?? character;

/** Serializes the element. @throws {XmlError} for a name or a character that XML 1.0 does not allow */
export function serializeXml({ name, attributes, children }: XmlElement): string {
  const open = [checkedName(name), ...Object.entries(attributes).map(serializeAttribute)].join(' ');
  if (children.length === 0) return `<${open}/>`;
  const content = children.map((child) =>
    typeof child === 'string' ? checkedText(child).replace(/[&<>\r]/g, escaped) : serializeXml(child),
  );
  return `<${open}>${content.join('')}</${name}>`;
}

/** Parsers replace white space in attributes with blanks, so it is escaped. */
function serializeAttribute([name, value]: [string, string]): string {
  return `${checkedName(name)}="${checkedText(value).replace(/[&<>"'\t\n\r]/g, escaped)}"`;
}

function checkedName(name: string): string {
  if (!NAME.test(name)) throw new XmlError(`${JSON.stringify(name)} is not an XML name.`);
  return name;
}

function checkedText(text: string): string {
  const [found] = NO_CHARACTER.exec(text) ?? [];
  if (found === undefined) return text;
  const code = found.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0');
  throw new XmlError(`XML cannot hold the character U+${code}.`);
}

/** Parses a document. A DOCTYPE is refused, so only XML's own entities exist. @throws {XmlError} */
export function parseXml(text: string): XmlElement {
  try {
    const { root, children } = parse(text, { preserveDocumentType: true });
    if (children.some((child) => child instanceof XmlDocumentType)) throw new Error('it has a DOCTYPE.');
    if (root === null) throw new Error('it has no root element.');
    return toElement(root);
  } catch (error) {
    // The error is a RangeError if the elements are nested too deeply.
    const [reason] = (error as Error).message.split('\n');
    throw new XmlError(`Berth cannot read this XML: ${reason}`, { cause: error });
  }
}

function toElement({ name, attributes, children }: ParsedElement): XmlElement {
  const content: (XmlElement | string)[] = [];
  for (const child of children) {
    if (child.type === 'element') content.push(toElement(child as ParsedElement));
    else if (child instanceof XmlText) content.push(child.text);
  }
  return { name, attributes: { ...attributes }, children: content };
}

export function childrenOf({ children }: Pick<XmlElement, 'children'>, name?: string): XmlElement[] {
  return children.filter(
    (child): child is XmlElement => typeof child !== 'string' && (name === undefined || child.name === name),
  );
}

/** The first descendant along a path of names, such as `devices`, `disk`. */
export function descend(from: XmlElement | undefined, ...names: readonly string[]): XmlElement | undefined {
  return names.reduce<XmlElement | undefined>(
    (at, name) => (at === undefined ? undefined : childrenOf(at, name)[0]),
    from,
  );
}

/** Its text, without that of child elements. */
export function textOf(of: XmlElement | undefined): string {
  return of?.children.filter((child) => typeof child === 'string').join('') ?? '';
}
