/** Chromium as Debian has it, without what it would ask of the network by itself. */
export const chromiumLaunch = {
  executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
};

/** What the function below uses of a page. */
interface PageElement {
  tagName: string;
  className: string;
  parentElement: PageElement | null;
  childNodes: Iterable<{ nodeType: number; textContent: string | null }>;
}
interface PageGlobals {
  document: { querySelectorAll(selector: string): Iterable<PageElement> };
  getComputedStyle(element: PageElement): { color: string; backgroundColor: string };
}

/** Runs in the page: what has less than the 4.5 to 1 that WCAG asks of text. */
export function weakContrasts(): string[] {
  const { document, getComputedStyle } = globalThis as unknown as PageGlobals;
  const rgba = (color: string): number[] => color.match(/[\d.]+/g)?.map(Number) ?? [];
  const part = (value: number): number =>
    value <= 10.31 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4;
  const luminance = ([red = 0, green = 0, blue = 0]: number[]): number =>
    0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue);
  const behind = (element: PageElement | null): number[] => {
    if (element === null) return [255, 255, 255];
    const color = rgba(getComputedStyle(element).backgroundColor);
    return color.length === 3 || color[3] === 1 ? color : behind(element.parentElement);
  };
  const weak = [...document.querySelectorAll('header *, main *, footer *')].flatMap((element) => {
    const hasText = [...element.childNodes].some(
      (node) => node.nodeType === 3 && node.textContent?.trim() !== '',
    );
    if (!hasText) return [];
    const [dark = 0, light = 0] = [rgba(getComputedStyle(element).color), behind(element)]
      .map(luminance)
      .toSorted((a, b) => a - b);
    const ratio = (light + 0.05) / (dark + 0.05);
    return ratio < 4.5 ? [`${element.tagName}.${element.className} ${ratio.toFixed(2)}`] : [];
  });
  return [...new Set(weak)];
}
