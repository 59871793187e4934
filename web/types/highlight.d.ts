// As much of the highlighter as the page uses.
declare const highlighter: {
  registerLanguage(name: string, language: unknown): void;
  getLanguage(name: string): unknown;
  registerAliases(names: string[], options: { languageName: string }): void;
  highlight(code: string, options: { language: string; ignoreIllegals: boolean }): { value: string };
};
export default highlighter;
