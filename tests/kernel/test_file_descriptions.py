"""What is said of files, by their content: a table of made-up nasty ones; and what hostile ones do to a kernel."""

import bz2
import datetime
import gzip
import json
import lzma
import os
import re
import sqlite3
import zipfile
import zlib
from contextlib import closing

import pandas as pd
import pytest

from tw_autogen.kernel import Describer, LocalKernel

GERMAN = "Datum;Region;Umsatz;Menge\n2024-01-01;Köln;1.234,50;3\n2024-01-02;Düren;99,90;1\n"
FTC = """Reports by Type,,
,,
Kind,# of Reports,Share
Fraud,"1,299",12.5%
Theft,881,3%
,,
"Source: a made-up network, 2024",,
"""
TWO_TABLES = "Status,n\nActive,5\nRetired,7\n,\nBranch,n\nArmy,3\nNavy,9\n"
TITLED = """Yearly report,,,
,,,
Sales by region,,,
region,n,,
North,"1,200",,
South,900,,
,,,
Staff,12,,
Stores,3,,
,,,
Top stores,,,
rank,store,n,Share
1,Oslo,5,12%
2,Bergen,4,10%
3,Narvik,1,n.a.
Years,,,
,2022,2023,
all,100,110,
few,7,9,
,,,
"Source: nobody",,,
"""
MANUAL = """# Guide

Long words about nothing in particular, which fill the page. %s

## Fees

- If a field is null, it applies to all possible values of it.
- The fee is `fee = fixed_amount + rate * value / 10000`.
- **fixed_amount**: in euros.

## Contact

Write to the desk.
""" % ("Lorem ipsum dolor sit amet. " * 60)
NESTED = [
    {"id": 1, "types": [], "aci": ["A", "B"], "limit": None, "at": {"city": "X", "zip": "01"}},
    {"id": 2, "types": ["R"], "aci": ["C"], "limit": 5, "at": {"city": "Y", "zip": "02"}, "extra": True},
]


def rows(text, count):
    return text + "".join(f"{at},{at % 7}\n" for at in range(count))


UMLAUTS = "name,v\nMüller,1\nJäger,2\nGroß,3\nBjörk,4\nÅse,5\n"
DAYS = [str(datetime.date(2000, 1, 1) + datetime.timedelta(days=one)) for one in range(3000)]
TABLE = {  # fmt: off
    # name: (file name, content, what is said, what is not said)
    "plain": ("a.csv", "a,b\n1,x\n2,y\n", ["CSV: 2 rows x 2 columns", "'a': int, 1 … 2", "'b': text"], ["read_csv"]),
    "blank in a name": ("a.csv", "a , b\n1,2\n", ["'a ':", "' b':"], []),
    "name twice": ("a.csv", "a,a\n1,2\n", ["names that occur twice: 'a'"], []),
    "no name": ("a.csv", ",b\n0,5\n1,6\n", ["'Unnamed: 0': int"], []),
    "missing": ("a.csv", "a,b\n1,\n,NA\n3,z\n", ["'a': int, 1 … 3, all different, 1 missing", "2 missing ('NA' 1)"],
                []),
    "odd entries": ("a.csv", "a\n" + "5\n" * 9 + "undefined\n", ["9 plain numbers", "odd: 'undefined' (1)"], []),
    "tab in numbers": ("a.csv", "a,b\n1,\t456\n2,7\nx,8\n", ["'b': int, 7 … 456"], ["odd: '\\t456'"]),
    "thousands": ("a.csv", 'n,m\n"1,299",x\n881,y\n',
                  ["'n': int, 881 … 1,299, all different, 1 with ',' between thousands", "thousands=','"], []),
    "tags": ("a.csv", "v\n0.7\n<0.5\n1.2\n", ["2 plain numbers (0.7 … 1.2)", "1 with '<' or '>' ('<0.5')"], []),
    "percent": ("a.csv", "v,w\n5%,a\n12.5 %,b\n", ["2 with '%' ('5%', '12.5 %')"], []),
    "currency": ("a.csv", "v,w\n$5,a\n$71M,b\n", ["2 with a currency ('$5', '$71M')"], []),
    "minus sign of typesetters": ("a.csv", "v\n1\n2\n\u22123\n", ["1 with '\u2212' for minus"], []),
    "years above numbers and marks": (
        "a.csv", "geo,2019,2020,2021\n" + "".join(f"{'ABCDEF'[at]},{3 * at},{':' if at % 2 else at},{at}\n"
                                                  for at in range(6)),
        ["6 rows x 4 columns", "'2019': int, 0 … 15"], ["header=None", "names"]),
    "years above marks alone and numbers": (
        "a.csv", "geo,2021,2020,2019\n" + "".join(f"{'ABCDEF'[at]},{5 - at},..,{'..' if at < 4 else 40 + at}\n"
                                                  for at in range(6)),
        ["6 rows x 4 columns", "'2021': int, 0 … 5"], ["header=None"]),
    "years of rows beside marks, no names": (
        "a.csv", "Mozart,1756,1791\nBach,1685,1750\nPärt,1935,:\nReich,1936,:\nHaydn,1732,1809\n",
        ["5 rows x 3 columns", "column 1: int, 1685 … 1936", "header=None"], []),
    "marks in a group of columns": (
        "a.csv", "geo," + ",".join(f"v{at}" for at in range(6)) + "\n"
                 + "".join(f"{at}x" + f",{'..' if at % 3 else at / 4}" * 6 + "\n" for at in range(60)),
        ["'v0' … 'v5': 6 columns, number-like text, 0 … 14.25, odd: '..' (240)"], []),
    "forms in a group of columns": (
        "a.csv", "geo," + ",".join(f"v{at}" for at in range(6)) + "\n"
                 + "".join(f"{at}x" + f",{at}%" * 6 + "\n" for at in range(60)),
        ["'v0' … 'v5': 6 columns, number-like text, 360 with '%'"], ["odd"]),
    "missing in a group of columns": (
        "a.csv", "geo," + ",".join(f"v{at}" for at in range(6)) + "\n"
                 + "".join(f"{at}x" + f",{at if at else ''}" * 6 + "\n" for at in range(60)),
        ["'v0' … 'v5': 6 columns, int, 1 … 59, 1 missing each"], []),
    "more marks than numbers": (
        "a.csv", "v,w\n" + "".join(f"{'?' if at % 4 else at + 0.5},x\n" for at in range(80)),
        ["'v': number-like text, 20 plain numbers (0.5 … 76.5), odd: '?' (60)"], []),
    "more words than numbers": (
        "a.csv", "v,w\n" + "".join(f"{('Total', 'North', 'B')[at % 4 - 1] if at % 4 else at},x\n" for at in range(80)),
        ["'v': text, 23 distinct"], ["odd"]),
    "heads above names that occur twice": (
        "a.csv", "Region sales,,,,\n,,,,\n,2023,,2024,\nRegion,Units,Rev,Units,Rev\n"
                 + "".join(f"R{at},{at},{at + 9},{at},{at + 7}\n" for at in range(9)),
        ["header in line 4", "1 line above the names may hold heads of them, with skiprows=2, header=[0, 1] they are"],
        []),
    "heads of heads": (
        "a.csv", ",North,,,,South,,,\n,2023,,2024,,2023,,2024,\nProduct,U,R,U,R,U,R,U,R\n"
                 + "".join(f"P{at}{f',{at},{at + 9}' * 4}\n" for at in range(9)),
        ["header in line 3", "2 lines above the names may hold heads of them, with header=[0, 1, 2] they are tuples"],
        []),
    "names that occur twice below a title": (
        "a.csv", "Sales of all regions,,\n,,\nRegion,Rev,Rev\n" + "".join(f"R{at},{at},{at}\n" for at in range(9)),
        ["header in line 3", "names that occur twice"], ["heads"]),
    "leading zeros": ("a.csv", "zip,n\n01234,7\n50667,8\n", ["digits with leading zeros", "dtype={'zip': str}"], []),
    "constant": ("a.csv", "c,n\nEUR,1\nEUR,2\n", ["'c': text, always 'EUR'"], []),
    "few values": ("a.csv", "s\nm\nm\nf\n", ["2 values: 'm' (2), 'f' (1)"], []),
    "case only": ("a.csv", "s,n\nBerlin,1\nberlin,2\n", ["differ in upper and lower case only"], []),
    "blanks around": ("a.csv", "s,n\nx ,1\ny,2\n", ["1 with blanks around, such as 'x '"], []),
    "ISO dates": ("a.csv", "d\n2024-03-01\n2024-01-15\n", ["date text YYYY-MM-DD, 2024-01-15 … 2024-03-01"], []),
    "many dates": ("a.csv", "d\n" + "".join(f"{day}\n" for day in DAYS) + "31/12/2099\n",
                   [f"date text YYYY-MM-DD, {DAYS[0]} … {DAYS[-1]}", "odd: '31/12/2099' (1)", "3001 distinct"], []),
    "dates with times": ("a.csv", "d\n2015-07-24 11:40:51\n2015-07-25 01:00:00\n", ["YYYY-MM-DD with time"], []),
    "day first": ("a.csv", "d\n13/02/2024\n01/03/2024\n", ["day first"], ["month first"]),
    "month first": ("a.csv", "d\n02/13/2024\n03/01/2024\n", ["month first"], ["day first"]),
    "day or month": ("a.csv", "d\n02/03/2024\n03/01/2024\n", ["day or month first is not certain"], []),
    "days of named months": (
        "a.csv", "d,n\n5-Jan-2003,1\n31-Dec-2002,2\n1-Feb-2003,2\n",
        ["'d': date text D-Mon-YYYY, 31-Dec-2002 … 1-Feb-2003"], ["e.g."],
    ),
    "days of named months, short": (
        "a.csv", "d\n05-JAN-03\n17-JUN-98\n", ["'d': date text D-Mon-YY, 17-JUN-98 … 05-JAN-03"], [],
    ),
    "days of named months, by letters alone": ("a.csv", "d\n01JAN2020\n31DEC2019\n", ["31DEC2019 … 01JAN2020"], []),
    "days of written months": (
        "a.csv", "d\n1 March 2021\n15 September 2020\n",
        ["'d': date text D-Mon-YYYY, 15 September 2020 … 1 March 2021"], [],
    ),
    "named months first": (
        "a.csv", 'd\n"Jan 5, 2003"\n"December 31, 2002"\nFeb 1 2003\n',
        ["'d': date text Mon D, YYYY, December 31, 2002 … Feb 1 2003"], [],
    ),
    "named months with times": (
        "a.csv", "d\n05-Jan-2003 10:30\n04-Jan-2003 11:00:01\n",
        ["D-Mon-YYYY with time, 04-Jan-2003 11:00:01 … 05-Jan-2003 10:30"], [],
    ),
    "named months of years": ("a.csv", "m\nJan 2003\nDec 2002\n", ["'m': date text Mon-YYYY, Dec 2002 … Jan 2003"], []),
    "named months of years or days": ("a.csv", "m\nJan-03\nDec-02\n", ["'m': text"], ["date text"]),
    "named months of both years": ("a.csv", "d\n5-Jan-2003\n4-Jan-02\n", ["D-Mon-YY or YYYY, 4-Jan-02 … 5-Jan"], []),
    "no names of months": ("a.csv", "d\n12-Abc-2003\n13 Jam 04\nMay be 2003\n", ["'d': text"], ["date text"]),
    "dates of two forms": (
        "a.csv", "d,n\n2023-01-05,1\n05/01/2023,2\n2023-02-06,3\n13/02/2023,4\n13/02/2023,5\n",
        ["'d': date text in mixed forms, 2 YYYY-MM-DD ('2023-01-05'), 3 DD/MM/YYYY (day first) ('05/01/2023'), 4"], [],
    ),
    "dates of two forms, ambiguous": (
        "a.csv", "d,n\n2023-01-05,1\n05/01/2023,2\n", ["1 DD/MM/YYYY or MM/DD/YYYY, day or month first is not"], [],
    ),
    "texts and some dates": ("a.csv", "d\n2023-01-05\n05/01/2023\nsoon\nlater\n", ["'d': text"], ["mixed forms"]),
    "SPSS": ("a.sav", b"$FL2\0", ["SPSS file, not looked through: pd.read_spss reads it with pyreadstat"], []),
    "one odd date": ("a.csv", "d\n" + "2024-03-01\n" * 20 + "soon\n", ["odd: 'soon' (1)"], []),
    "true and false": ("a.csv", "b\nTrue\nFalse\nTrue\n", ["'b': bool"], []),
    "all empty": ("a.csv", "a,b\n1,\n2,\n", ["'b': empty"], []),
    "header only": ("a.csv", "a,b\n", ["0 rows x 2 columns", "'a': no rows"], []),
    "numbers for a header": ("a.csv", "1.5,2\n3,4\n", ["read it with header=None"], []),
    "title and source": (
        "a.csv",
        FTC,
        ["2 rows x 3 columns, header in line 3", "'# of Reports'", "1 line below its rows", "skiprows=2, nrows=2"],
        ["'Kind': text, 3"],
    ),
    "title with commas": (
        "a.csv", "Births, deaths, marriages\nSource: Office, county\n\nyear,town,births\n2001,A b,3\n2002,C,4\n",
        ["2 rows x 3 columns, header in line 4", "'births': int", "skiprows=3"], ["odd"],
    ),
    "title with a comma, no blank line": (
        "a.csv", "Births, 2019\nyear,town,births\n2001,A b,3\n2002,C,4\n", ["2 rows x 3 columns, header in line 2"], [],
    ),
    "a first line that says how many": (
        "a.csv", "178,13,class_0,class_1\n" + "".join(f"14.{at},1.7,2.4,15.6,127,{at}\n" for at in range(9)),
        ["9 rows x 6 columns, first row in line 2", "column 5: int, 0 … 8", "header=None, skiprows=1)"], ["usecols"],
    ),
    "a narrow title right above the header": (
        "a.csv", "Export 2024,2 files\nid,name,x,y\n" + "".join(f"{at},n{at},1,2\n" for at in range(9)),
        ["9 rows x 4 columns, header in line 2", "'id': int"], ["header=None", "usecols"],
    ),
    "values parted by blanks": (
        "a.csv", "popul news age\n" + "".join(f"{at} 7 {at + 30}\n" for at in range(9)),
        ["9 rows x 3 columns", "'age': int, 30 … 38", r"sep=r'\s+'"], [],
    ),
    "names of rows without a name": ("a.csv", "first name,n\nr1,x,1\nr2,y,2\n", ["2 rows x 2 columns"], ["line 2"]),
    "whole numbers among decimals": ("a.json", '[{"a": 1}, {"a": 2.5}, {"a": 3}]', ["'a': float, 1 … 3, all"], []),
    "no header": (
        "a.csv", "5.1,3.5,setosa\n4.9,3.0,setosa\n6.2,2.9,virginica\n5.9,3.0,virginica\n",
        ["4 rows x 3 columns", "column 0: float, 4.9 … 6.2", "holds no names", "header=None)"], ["'5.1'"],
    ),
    "years for names": (
        "a.csv", "country,1990,1991\nA,5,6\nB,6,6\nC,7,8\n", ["3 rows x 3 columns", "'1990': int"], ["header=None"],
    ),
    "a table by its text": (
        "a.dat", "39, State-gov, 2174\n50, Private, 0\n38, Private, 0\n53, State-gov, 0\n",
        ["CSV: 4 rows x 3 columns", "column 1: text", "header=None"], [],
    ),
    "a table with blanks": (
        "a.txt", "# made by hand\nx   y\tz\n1 2.5   3\n4  5 6\n7 8 9\n",
        ["table with blanks: 3 rows x 3 columns, header in line 2", "'y': float", r"sep=r'\s+', skiprows=1"], [],
    ),
    "prose with commas": ("a.txt", "One, two.\nThree, four.\nFive, six.\nSeven, 8.\n", ["text of 4 lines"], ["CSV"]),
    "rows without values": ("a.csv", "a,b\n1,2\n,\n3,4\n", ["2 rows x 2", "1 empty row, separators only"], []),
    "yes and no": ("a.csv", "b\nyes\nno\nyes\n", ["'b': text, 2 values: 'yes' (2), 'no' (1)"], []),
    "two tables": (
        "a.csv",
        TWO_TABLES,
        ["CSV: 2 tables, one below the other", "table 1: header in line 1, 2 rows x 2", "| Branch,n",
         "pd.read_csv(…, skiprows=4, nrows=2)"],
        ["below its rows"],
    ),
    "titled tables": (
        "a.csv",
        TITLED,
        ["3 tables", "line 1: | Yearly report", "table 1 under 'Sales by region': header in line 4, 2 rows x 2 columns",
         "lines 8–9, no table is certain:", "| Staff,12", "table 2 under 'Top stores'", "3 rows x 4 columns",
         "'Share': number-like", "odd: 'n.a.' (1)", "table 3 under 'Years': header in line 17",
         "line 21: | Source: nobody"],
        ["| Oslo"],
    ),
    "tables of one layout": (
        "a.csv",
        "North\nday,n\n1,5\nSouth\nday,n\n1,7\n",
        ["table 2 under 'South': header in line 5, 1 row x 2 columns, columns as in table 1\n  | 1,7"],
        [],
    ),
    "columns of tables side by side": (
        "a.csv",
        "day,n,,shop,n\n2024-01-01,5,,A,7\n2024-01-02,6,,B,8\n2024-01-03,4,,C,\n2024-01-04,14,,C,9\n",
        ["2 tables, side by side", "  'day': date text YYYY-MM-DD, 2024-01-01 … 2024-01-04, 4 distinct",
         "  'n': int, 4 … 14", "  'shop': text, 3 values: 'C' (2)", "  'n.1': int, 7 … 9, all different, 1 missing"],
        [],
    ),
    "columns of tables one below the other": (
        "a.csv",
        "Sales\nday,n\n1,5\n2,6\n3,8\n4,9\n\nStaff\nname,age\nA,33\nB,41\nC,26\nD,59\n\n"
        "Shops\nday,n\n7,1\n8,2\n9,3\n9,4\n",
        ["'day': int, 1 … 4", "  'age': int, 26 … 59, all different", "columns as in table 1\n  | 7,1\n  pd.read_csv"],
        [],
    ),
    "groups without headers": (
        "a.csv",
        "Figures,\n,\nStaff,12\nStores,3\n,\nFounded,1999\nClosed,never\n",
        ["several tables or groups of rows", "lines 3–4, no table is certain:", "lines 6–7, no table",
         "| Closed,never"],
        ["'Figures': "],
    ),
    "groups of one table": (
        "a.csv",
        "region,city,n\nNorth,,\n,Kiel,5\n,Husum,6\n,,\nSouth,,\n,Ulm,7\n",
        [],
        ["one below the other", "table 2"],
    ),
    "text after an empty line": ("a.csv", "a,b\n1,2\n\nx,y\nq,r\n", [], ["one below the other"]),
    "blank lines in a table": ("a.csv", "a,b\n1,2\n,\n3,4\n", ["2 rows x 2"], ["below its rows"]),
    "a total": ("a.csv", "a,b\nx,2\ny,4\nTotal,6\n", ["the last row is a total, 'b' the sum of the others: Tot"], []),
    "comments": ("a.csv", "# made on Monday\na,b\n1,2\n", ["header in line 2", "skiprows=1"], []),
    "German": ("a.csv", GERMAN, ["sep=';', decimal=',', thousands='.'", "'Umsatz': float, 99,90 … 1.234,50"], []),
    "Windows letters": ("a.csv", GERMAN.encode("cp1252"), ["encoding='cp1252'", "Köln"], []),
    "a late letter behind letters of UTF-8": (
        "a.csv", UMLAUTS.encode() + b"x,1\n" * 2_250_000 + "Renée,6\n".encode("cp1252"),
        ["utf-8 with bytes that are not in 1 place", "encoding_errors='replace'", "'Müller'"], ["cp1252"],
    ),
    "late lines of Windows behind letters of UTF-8": (
        "a.csv", UMLAUTS.encode() + b"x,1\n" * 300_000 + "Renée,6\n".encode("cp1252") * 20,
        ["utf-8 with bytes that are not in 20 places", "'Müller'"], ["cp1252"],
    ),
    "late lines of Japanese": (
        "a.csv", b"name,v\n" + b"x,1\n" * 300_000 + "東京都港区,1\n大阪府北区,2\n".encode("cp932") * 20,
        ["encoding='cp932'"], ["cp1252"],
    ),
    "wrong bytes behind a mark of UTF-8": (
        "a.csv", UMLAUTS.encode("utf-8-sig") + "Renée,6\n".encode("cp1252"),
        ["utf-8-sig with bytes that are not in 1 place", "encoding='utf-8-sig', encoding_errors='replace'"], [],
    ),
    "a late letter": ("a.csv", b"name\n" + b"x\n" * 600_000 + "Köln\n".encode("cp1252"), ["encoding='cp1252'"], []),
    "UTF-16": ("a.csv", GERMAN.encode("utf-16"), ["encoding='utf-16'", "Köln"], []),
    "Mac letters": (
        "a.csv", "ville,n\nPérigueux,1\nHyères,2\nBesançon,3\n".encode("mac_roman"),
        ["CSV, mac_roman (guessed by its letters): 3 rows", "encoding='mac_roman'", "Périgueux"],
        ["or an encoding of other"],
    ),
    "Windows letters and signs": (
        "a.csv", "name,n\nDušan’s,1\ntotal‡,2\nš–ž,3\nBjörn,4\nmüßig™,5\n".encode("cp1252"), ["'cp1252'"], ["mac"],
    ),
    "units below the names": (
        "a.csv", "station,temp,rain\n,°C,mm\nA,5.5,3\nB,6.5,4\nC,7.0,5\n",
        ["3 rows x 3 columns", "'temp': float, 5.5 … 7.0", "second line is no row, but units or more names: ,°C,mm",
         "pd.read_csv('a.csv', skiprows=[1])"], ["odd: "],
    ),
    "units below names below a title": (
        "a.csv", "Weather of May,,\n,,\nday,temp,rain\n[d],[C],[mm]\n1,5.5,3\n2,6.5,4\n3,7.0,5\n,,\nSource: us,,\n",
        ["3 rows x 3 columns", "'day': int, 1 … 3", "skiprows=[0, 1, 3], nrows=3)"], ["odd: "],
    ),
    "heads of groups above the names": (
        "a.csv", "Trends,share of searches,,\nplace,NFL,NBA,other\nA,5.5,3,1\nB,6.5,4,2\nC,7.0,5,4\n",
        ["3 rows x 4 columns, header in line 2", "'NFL': float, 5.5", "pd.read_csv('a.csv', skiprows=1)"], ["odd"],
    ),
    "heads of groups above longer names, the first of them empty": (
        "a.csv", ",,Basics,,,Ratings,\n,place,number of answers,share of those who said yes,,mean,mean bias\n"
        + "".join(f"{at},P{at},{at * 7},{at / 8},,{at / 9:.3},-{at}\n" for at in range(1, 9)),
        ["8 rows x 7 columns, header in line 2", "'number of answers': int, 7 … 56", "skiprows=1)"], ["odd"],
    ),
    "heads of groups below a title": (
        "a.csv", "Country A,,,,\nof 2020,,,,\n,,people,,\nland,town,#,share,#\nL: all,,36,,44\n"
        + "".join(f"L,T{at},{at},0.{at},{at + 1}\n" for at in range(1, 9)),
        ["9 rows x 5 columns, header in line 4", "'share': float, 0.1 … 0.8", "skiprows=3)"], ["odd", "Unnamed"],
    ),
    "an empty line above numbers": ("a.csv", ",,\n1,x,y\n2,x,z\n", ["2 rows x 3 columns", "'Unnamed: 0': int"], ["s="]),
    "separators alone": ("a.csv", ",,\n,,\n,,\n", ["0 rows x 3 columns"], ["header in"]),
    "empty lines above the header": ("a.csv", ",,\n,,\n,,\na,b,c\n1,2,3\n", ["header in line 4", "| a,b,c"], ["| ,,"]),
    "names and values of the whole file above the header": (
        "a.csv", "Source,ID,City,Height,Unit of Rain,Version\nX,401,-,-,mm,1.2\nYear,Month,Day,Rain,Wind\n"
        + "".join(f"2023,1,{at},{at}.5,{at}\n" for at in range(1, 29)),
        ["28 rows x 5 columns, header in line 3", "'Rain': float, 1.5 … 28.5", "skiprows=2)"], ["odd"],
    ),
    "a small table above the header": (
        "a.csv", "Height (m): 250\nmonth,year\n" + "".join(f"{at},{2000 + at}\n" for at in range(1, 13))
        + "time,rain,wind,sun\n" + "".join(f"2018010{at}:0{at},{at}.5,{at},7\n" for at in range(1, 9)) * 9,
        ["72 rows x 4 columns, header in line 15", "'rain': float, 1.5 … 8.5", "skiprows=14)"], ["more values"],
    ),
    "a title of many commas above semicolons and years": (
        "a.csv", "\n\nDoctors, nurses, by year, region, sex\n****\n\nRegion:;X\nSex:;all\n\n\n\n\n;2001;2002;2003;\n"
        + "".join(f"P{at};{at};{at + 1};{at + 2};\n" for at in range(1, 31)),
        ["CSV with ';': 30 rows x 5 columns, header in line 12", "'2001': int, 1 … 30", "sep=';', skiprows=11)"], [],
    ),
    "years in three columns": (
        "a.csv", "name,born,crowned,died\n" + "A,1801,1820,1850\n" * 3 + "B,1801,,\nC,,20,\n" + "D,1802,1822,1851\n" * 9
        + "E,1,5,9\n" + "F,1803,1823,1852\n" * 40, ["55 rows x 4 columns", "'born': int"], ["header in"],
    ),
    "words from line to line below a table": (
        "a.csv", "name,age,job,town\n" + "".join(f"N{at},{at * 9},j{at},X\n" for at in range(1, 9))
        + "some,,,\n,people write,,\n,,at the,end\n",
        ["8 rows x 4 columns", "'age': int, 9 … 72", "3 lines below its rows", "nrows=8)"], ["odd"],
    ),
    "last rows with a word for a number": (
        "a.csv", "name,age,job,town\n" + "".join(f"N{at},{at},j{at},X\n" for at in range(1, 9)) + "A,old,,\nB,old,,\n",
        ["10 rows x 4 columns", "odd: 'old' (2)"], ["nrows"],
    ),
    "units and more names below the header": (
        "a.csv", "Name,Area,Current\nUnits,m2,A\n[0],x_area,x_current\n"
        + "".join(f"N{at},{at}.5,{at}\n" for at in range(1, 29)), ["29 rows x 3 columns", "'Area': "], ["skiprows=2"],
    ),
    "heads of groups above names that come again": (
        "a.csv", "place,men,,women,\n,yes,no,yes,no\nA,5,3,1,2\nB,6,4,2,3\nC,7,5,4,3\n",
        ["second line holds more names, with header=[0, 1] they are pairs: ,yes,no,yes,no"], ["skiprows"],
    ),
    "a first row that is no unit": ("a.csv", "k,a,b\nx,n/a,NA\ny,1,2\nz,3,4\nu,5,6\n", ["4 rows x 3"], ["no row"]),
    "a word that comes again": ("a.csv", "a,b\nlow,low\n1,2\n3,4\n5,low\n" + "1,2\n" * 20, ["24 rows"], ["no row"]),
    "byte order mark": ("a.csv", GERMAN.encode("utf-8-sig"), ["'Datum'"], ["ufeff"]),
    "tabs": ("a.tsv", "a\tb\n1\t2\n", ["with tabs: 1 rows x 2", "sep='\\t'"], []),
    "pipes": ("a.csv", "a|b\n1|2\n", ["sep='|'"], []),
    "Windows line ends": ("a.csv", b"a,b\r\n1,2\r\n", ["1 rows x 2", "'b': int"], ["\r"]),
    "lines in quotes": ("a.csv", 'a,b\n"x\ny",2\nz,3\n', ["2 rows x 2"], []),
    "too many values": ("a.csv", "a,b\n1,2,3\n4,5\n", ["1 rows have more values than", "usecols=range(2)"], []),
    "too few values": ("a.csv", "a,b\n1\n4,5\n", ["1 rows have fewer values than the header"], []),
    "many alike columns": (
        "a.csv",
        "c," + ",".join(f"y{year}" for year in range(1990, 2020)) + "\nx," + ",".join("5" for _ in range(30)) + "\n",
        ["'y1990' … 'y2019': 30 columns, int"],
        ["'y2001'"],
    ),
    "many rows that are sorted": (
        "a.csv", "month,n\n" + "".join(f"{at // 25_000 + 1},{at}\n" for at in range(300_000)),
        ["about 300000 rows", "'month': int, 1 … 12, 12 distinct", " of the others"], [],
    ),
    "a large file that is sorted": (
        "a.csv", "name,text\n" + "".join(f"{'abc'[at // 60_000]},{'x' * 60}\n" for at in range(180_000)),
        ["about 180000 rows", "'name': text, 3 values: 'a'", "'c' ("], [],
    ),
    "an empty column of a large file": (
        "a.csv", "a,b\n" + "1,\n" * 300_000, ["'b': empty, as far as looked at"], [],
    ),
    "the end of a large file": (
        "a.csv", "day,n,town\n" + "".join(f"{DAYS[at // 100]},{at},x{at}\n" for at in range(300_000)) + "Total,7,\n\n"
        + "Source: a register of towns that nobody keeps,,\n",
        ["odd: 'Total' (1)", f"{DAYS[0]} … {DAYS[-1]}", "'n': int, 0 … 299999",
         "'town': text, all different", "1 line below its rows",
         "| Source: a register of towns"], [],
    ),
    "the end of a very large file": (
        "a.csv", "n,text\n" + "".join(f"{at},{'x' * 1000}\n" for at in range(62_000)) + "n/a,y\n",
        ["about 61999", "'n': int, 0 … 61999, all different, 1 missing ('n/a' 1)"], [],
    ),
    "the end of many rows": (
        "a.csv", "a,b\n" + "".join(f"{at},x\n" for at in range(200_000)) + "n/a,y\n",
        ["about 200001 rows", "'a': int, 0 … 199999, all different, 1 missing ('n/a' 1)"], ["below its rows"],
    ),
    "texts of several lines at the end of a large file": (
        "a.csv", "a,b,c\n" +
        "".join(f'{at},"Good.\nNote: I liked it very much, I did.\nSo {at}.",1\n' for at in range(200_000)),
        ["judged by its first"], ["below its rows"],
    ),
    "many rows": ("a.csv", rows("a,b\n", 300_000), ["about 300000 rows", "judged by its first"], []),
    "compressed": ("a.csv.gz", gzip.compress(GERMAN.encode(), mtime=0), ["'Umsatz': float"], []),
    "compressed lines": ("a.jsonl.bz2", bz2.compress(b'{"a": 1}\n'), ["JSON lines: 1 objects"], []),
    "not compressed": ("a.csv.gz", "no gzip", ["not readable as csv: Not a gzipped file"], []),
    "empty file": ("a.csv", "", ["not readable as csv: it is empty"], []),
    "a pointer of Git LFS": (
        "a.parquet", f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d7a' * 16}\nsize 12345\n",
        ["not here: Git LFS keeps it (12.3 kB)", "`git lfs pull`"], ["oid"],
    ),
    "no text": ("a.csv", b"\0\0\1", ["not readable as csv"], []),
    "nested JSON": (
        "a.json",
        json.dumps(NESTED),
        ["list of 2 objects", "'types': list of str, 0–1 items, 1 empty ([], not null)",
         "'aci': list of str, 1–2 items", "'limit': int, 5, 1 null", "'extra': bool, true, absent in 1",
         "  'zip': str"],
        [],
    ),
    "booleans of JSON": (
        "a.json", '[{"a": true, "b": true}, {"a": false, "b": true}, {"a": true, "b": null}]',
        ["'a': bool, true (2), false (1)", "'b': bool, always true, 1 null"], ["'True'"],
    ),
    "lists of JSON, empty and null": (
        "a.json", '[{"a": []}, {"a": null}, {"a": ["x", "y"]}, {"a": []}, {}]',
        ["'a': list of str, 0–2 items, 2 empty ([], not null), all different: 'x', 'y', 1 null, absent in 1"], [],
    ),
    "JSON by key": ("a.json", json.dumps({f"k{at}": at for at in range(50)}), ["of 50 keys, such as 'k0'"], ["'k7'"]),
    "JSON of numbers": ("a.json", "[1, 2, 3]", ["JSON: list of int, 3 items"], []),
    "mixed JSON": ("a.json", '[{"a": 1}, {"a": "x"}]', ["int (1)", "str (1)"], []),
    "broken JSON": ("a.json", "{", ["not readable as json"], []),
    "JSON lines, one broken": (
        "a.jsonl", '{"a": 1}\n\n{"a":\n{"a": 4}\n',
        ["JSON lines: 2 objects", "no JSON, and read_json fails there: line 3, such as", "'a': int, 1 … 4"], [],
    ),
    "JSON lines": ("a.jsonl", '{"a": 1}\n{"a": 2}\n', ["JSON lines: 2 objects", "'a': int, 1 … 2"], []),
    "days of two-digit years": ("a.csv", "d,n\n31.01.24,1\n01.02.24,2\n", ["date text DD.MM.YY (day first)"], ["YYYY"]),
    "months of two-digit years": ("a.csv", "d\n1/31/24\n2/1/24\n", ["date text MM/DD/YY (month first)"], ["YYYY"]),
    "a day of two-digit figures": ("a.csv", "d\n17/06/09\n17/06/09\n", ["YY/MM/DD or DD/MM/YY"], ["(day first)"]),
    "two-digit years first": ("a.csv", "d\n24/01/31\n24/02/20\n", ["YY/MM/DD or DD/MM/YY, which"], ["(day first)"]),
    "totals by group": (
        "a.csv",
        "land,sex,n\nA,all,9\nA,m,4\nA,f,5\nB,all,7\nB,m,4\nB,f,3\n",
        ["2 rows with 'all' in 'sex' are totals: 'n' is the sum of other rows"],
        ["in 'land'"],
    ),
    "subtotals": (
        "a.csv",
        "x,n\nA,1\nB,2\nTotal North,3\nC,5\nD,6\nTotal South,11\nGrand total,14\n",
        ["3 rows with 'Grand total', 'Total North', 'Total South' in 'x' may be totals: 'n' is the sum of other rows"],
        ["is not"],
    ),
    "a total without a label": ("a.csv", "x,n\nA,1\nB,2\n,3\n", ["the last row may be a total ('n' is the sum"], []),
    "totals of their own rows alone": (
        "a.csv", "x,n\na,1\nb,2\nTotal,4\nc,4\nd,5\nTotal,8\n", [], ["total", "sum"],
    ),
    "a total of totals that are none": (
        "a.csv", "x,n\na,100\nb,200\nSubtotal,310\nc,400\nd,500\nSubtotal,890\nTotal,1200\n", [], [" total", "the sum"],
    ),
    "a total of which one column is no sum": (
        "a.csv", "x,jan,feb\na,10,1\nb,20,2\nTotal,30,999\n",
        ["the last row may be a total ('jan' is the sum of the others, 'feb' is not): Total,30,999"], ["is a total"],
    ),
    "a total that is lost by rounding": (
        "a.csv", "x,n\nNorth,1000.00\nSouth,2000.00\nTotal,2997.50\n",
        ["the last row may be a total ('n' is nearly the sum of the others)"], ["is a total"],
    ),
    "a total of decimals": ("a.csv", "x,n\na,0.1\nb,0.2\nc,0.3\nTotal,0.6\n", ["the last row is a total, 'n' the"], []),
    "a name that may be a total": (
        "a.csv", "x,n\nNorth,100\nSouth,200\nAll Saints,300\n", ["row may be a total ('n' is the sum"], ["is a total"],
    ),
    "a company of that name": (
        "a.csv", "company,barrels,staff\nTotal,10,7\nShell,4,90\nBP,6,50\n",
        ["the first row may be a total ('barrels' is the sum of the others, 'staff' is not)"], ["is a total"],
    ),
    "a row without its first value, of which one number is a sum": (
        "a.csv", "day,n,k,pct\n2024-01-01,1,a,0.1\n2024-02-01,2,b,0.2\n,9,,0.3\n", [], ["total"],
    ),
    "a row without its first value, but with others": (
        "a.csv", "day,k,pct\n2024-01-01,a,0.1\n2024-02-01,b,0.2\n,c,0.3\n", [], ["total"],
    ),
    "a last row without a label below labelled ones": (
        "a.csv", "cat,item,v\nA,x,1\nA,y,2\nA,Subtotal,3\nB,x,4\nB,y,5\nB,Subtotal,9\n,,12\n",
        ["2 rows with 'Subtotal' in 'item' are totals: 'v' is the sum of other rows"], ["3 rows with"],
    ),
    "totals by group and year": (
        "a.csv",
        "land,year,sex,n\nA,2000,all,9\nA,2001,all,11\nA,2000,m,4\nA,2001,m,5\nA,2000,f,5\nA,2001,f,6\n",
        ["2 rows with 'all' in 'sex' are totals: 'n' is the sum of other rows"], ["is not", "may be"],
    ),
    "totals of two kinds of groups": (
        "a.csv", "g,s,n\nAll,All,10\nAll,m,4\nAll,f,6\na,All,3\na,m,1\na,f,2\nb,All,7\nb,m,3\nb,f,4\n",
        ["3 rows with 'All' in 'g' are totals", "3 rows with 'All' in 's' are totals"], ["may be"],
    ),
    "a first row of totals": ("a.csv", "x,n\nAll,3\nB,2\nC,1\n", ["the first row is a total, 'n' the sum"], []),
    "a total of one of several tables": (
        "a.csv",
        "x,n\nA,1\nB,2\nSumme,3\n,\ny,m\nA,1\nB,2\n",
        ["  the last row is a total, 'n' the sum of the others: Summe,3"],
        ["'m' the sum"],
    ),
    "no total": ("a.csv", "x,n\nall,1\nB,2\nC,5\nTotal,4\n", [], ["total,", "totals"]),
    "years below a title": (
        "a.csv",
        "CO2 by sector,,\nthousand tonnes,,\n,,\nSector,2000,2001\nTimber,266,274\nIron,927,744\n",
        ["header in line 4", "'2001': int, 274 … 744"],
        [],
    ),
    "lines with gaps above": (
        "a.csv",
        "Lots of people,,\nwrite notes,,here\nat,,top\nname,age,kids\nBo,69,2\nCy,87,1\nDi,60,3\n",
        ["header in line 4", "'age': int"],
        [],
    ),
    "Mac line ends": ("a.csv", b"a,b\r1,x\r\n2,y\r3,z\r", ["3 rows x 2 columns", "'a': int, 1 … 3"], ["not readable"]),
    "rows after an empty one": (
        "a.csv",
        "a,b,c\nx,1,\n,,\n,y,\nu,v,\n" + "w,5,\n" * 5,
        ["8 rows x 3 columns"],
        ["below its rows"],
    ),
    "cells of blanks": (
        "a.csv",
        "a,b\n1,x\n ,z\n2,\n3,  \n",
        ["'a': number-like text", "odd: ' ' (1)", "all different: 'x', 'z', '  ', 1 missing"],
        ["2 missing"],
    ),
    "empty rows at the end": ("a.csv", "a,b\n1,x\n2,y\n,\n,\n", ["2 rows x 2", "2 empty rows, separators only"], []),
    "ordinals": ("a.csv", "a\n57th\n115th\n1st\n", ["3 ordinals ('1st', '115th')"], ["unit"]),
    "codes of digits and letters": ("a.csv", "a\n1A\n2BC\n3D\n4E\n5F\n6\n", ["'a': text"], ["unit"]),
    "letters that nobody can tell": ("a.csv", b"n,m\n\xe9\x81\x8d\xe9,1\n\x8d\x81\x90,2\n", ["latin-1"], []),
    "short text": ("a.txt", "one\ntwo\n", ["text of 2 lines", "| one", "| two"], []),
    "long text": ("a.log", "word " * 2000, ["text of 1 line, 10000 characters", "it begins:", "| word word"], []),
    "manual": (
        "a.md",
        MANUAL,
        ["line 7: - If a field is null, it applies to all", "fee = fixed_amount + rate * value", "line 5: Fees ("],
        ["Write to the desk"],
    ),
    "page": (
        "a.html",
        "<title>T</title><table><tr><th>a<th>b</tr><tr><td>1</td><td>x</td></tr><tr><td>2</td><td>y</td></tr></table>",
        ["HTML, title 'T', 1 table", "table 0: 2 rows x 2 columns", "'a': int"],
        [],
    ),
    "page with a caption": (
        "a.html",
        "<table><caption>People <b>of</b> 2024<sup>1</sup></caption><tr><th>name</th><th>n</th></tr>"
        "<tr><th>A</th><td>1</td></tr><tr><th>B</th><td>2</td></tr></table>",
        ["table 0, caption 'People of 2024': 2 rows x 2 columns", "'name' heads its rows: index_col=0"],
        ["header rows", "no header cells"],
    ),
    "page with a header of two rows": (
        "a.html",
        "<table class='x navbox'><tr><td>q<td>r</tr><tr><td>q<td>r</tr><tr><td>q<td>r</tr></table>"
        "<table><thead><tr><th colspan=3>Census</tr>"
        "<tr><th rowspan=2>the<br>city<th colspan=2>people</tr><tr><th>2023<th>2024</tr></thead>"
        "<tbody><tr><td>A<td>1<td>2</tr><tr><td rowspan=2>B<td>3<td>4</tr><tr><td>5<td>6</tr></tbody></table>",
        ["3 rows x 3 columns", "| the city,2023,2024", "column ('people', '2024'): int, 2 … 6",
         "its first header row says 'Census' above all columns, droplevel leaves that out",
         "2 header rows: the columns have 2 levels, so their names are tuples",
         "pd.read_html('a.html')[1].droplevel(0, axis=1)"],
        ["heads its rows", "table 0"],
    ),
    "page without header cells": (
        "a.html",
        "<table><tr><td>a<td>b</tr><tr><td>1<td>2</tr><tr><td>3<td>4</tr></table>",
        ["2 rows x 2 columns", "no header cells: without header=0 its first row is data"],
        [],
    ),
    "names of rows": (
        "a.csv",
        '"mpg","cyl"\n"Mazda",21.0,6\n"Fiat",32.4,4\n',
        ["'mpg': float, 21.0 … 32.4", "'Mazda', 'Fiat', … begin its rows", "takes them for the index"],
        ["usecols", "more values"],
    ),
    "an empty value at each end": (
        "a.csv", "a,b\n1,2,\n3,4,\n", ["'a': int, 1 … 3", "usecols=range(2)"], ["index"]
    ),
    "dates without zeros": (
        "a.csv", "d,n\n2024-1-9,1\n2024-1-10,2\n2024-12-1,3\n2024-2-1,4\n", ["2024-1-9 … 2024-12-1"], []
    ),
    "times in several zones": (
        "a.csv",
        "t,n\n2024-03-30T23:30:00-05:00,1\n2024-03-31T00:10:00+09:00,2\n2024-03-31T03:00:00Z,3\n",
        ["2024-03-31T00:10:00+09:00 … 2024-03-30T23:30:00-05:00"],
        [],
    ),
    "seconds since 1970": (
        "a.csv",
        "id,dt,n\n" + "".join(f"{1437730851 + at},{1437730851 + at},5\n" for at in range(300)),
        ["'dt': int, 1437730851 … 1437731150, all different, which may be seconds since 1970: 2015-07-24 09:40:51 …",
         "'id': int, 1437730851 … 1437731150, all different\n"],
        [],
    ),
    "milliseconds since 1970": (
        "a.csv",
        "event_time,n\n" + "".join(f"{1437730851000 + at},5\n" for at in range(300)),
        ["which may be milliseconds since 1970: 2015-07-24 09:40:51 … 2015-07-24 09:40:51 UTC"],
        [],
    ),
    "names of times": (
        "a.csv",
        "timestampMs,startTime,unix_s,mtime,lifetime_cents,times,sentiment,runtime_id\n"
        + f"1437730851000,{','.join(['1437730851'] * 7)}\n" * 2,
        [f"'{one}': int, always 1437730851, which may be seconds since" for one in ("startTime", "unix_s", "mtime")]
        + ["'timestampMs': int, always 1437730851000, which may be milliseconds since 1970"],
        [f"'{one}': int, always 1437730851, " for one in ("lifetime_cents", "times", "sentiment", "runtime_id")],
    ),
    "Indian thousands": (
        "a.csv",
        "id;n\n1;1,23,456.50\n2;7,00,12,345\n3;98,765\n4;1,000\n",
        ["'n': float, 1,000 … 7,00,12,345", "sep=';', thousands=','"],
        ["decimal"],
    ),
    "Indian thousands beside words": (
        "a.csv",
        "id;n\n1;1,23,456\n2;7,00,12,345\n3;98,765\n4;about 5\n5;6\n",
        ["'n': number-like text", "3 with ',' between thousands ('98,765', '7,00,12,345')"],
        ["decimal"],
    ),
    "lists of numbers": (
        "a.csv",
        "id;n\n1;1,23,45\n2;7,00,12,34\n3;9,8,7\n",
        ["'n': text"],
        ["thousands", "decimal"],
    ),
    "English thousands and semicolons": (
        "a.csv",
        "id;n\n1;1,234\n2;12,345,678\n3;1,234.56\n",
        ["'n': float, 1,234 … 12,345,678", "sep=';', thousands=','"],
        ["decimal"],
    ),
    "commas before three decimals": (
        "a.csv", 'id,n\n1,"0,567"\n2,"1,234"\n3,"2,500"\n', ["'n': float, 0,567 … 2,500", "decimal=','"], ["thousands"]
    ),
    "points between thousands only": (
        "a.csv",
        "id;n\nA;1.234\nB;1.234.567\nC;987\n",
        ["'n': int, 987 … 1.234.567", "decimal=',', thousands='.'"],
        [],
    ),
    "integers beyond 53 bits": (
        "a.csv", "n\n1749000000000000001\n1749000000000000003\n1749000000000000002\n",
        ["1749000000000000001 … 1749000000000000003, all different"], [],
    ),
    "last rows with a key only": (
        "a.csv", "land;n;m;k\nItalien;1;2;3\nUngarn;4;5;6\nMalta;;;\nVatikan;;;\n", ["4 rows x 4"], ["below its rows"],
    ),
    "last days without values, and a note": (
        "a.csv", "day,n,m\n2024-01-01,5,1\n2024-01-02,6,2\n2024-01-03,,\n2024-01-04,,\nSource: us,,\nall made up,,\n",
        ["4 rows x 3", "2024-01-01 … 2024-01-04", "2 lines below its rows", "| Source: us,,", "nrows=4"], [],
    ),
    "a last record with a long first value only": (
        "a.csv", "title,year,x\nA,2001,1\nB,2002,2\nC,2003,3\nThe long winding road to the sea again,,\n",
        ["4 rows x 3", "'year': int, 2001 … 2003, all different, 1 missing"], ["below its rows", "nrows"],
    ),
    "a sentence below a table": (
        "a.csv", "title,year,x\nA,2001,1\nB,2002,2\nThe office itself has counted all films.,,\n",
        ["2 rows x 3", "1 line below its rows, no rows of it:", "nrows=2"], [],
    ),
    "a last record, or a note, with a first value only after an empty line": (
        "a.csv", "name,score,grade\nAnn,5,A\nBob,6,B\n\nCid,,\n",
        ["1 line below its rows, which may be no rows of it:", "| Cid,,"], [],
    ),
    "keys that look like notes": (
        "a.csv", "key,n,m\nA: x,1,2\nB: y,3,4\nC: z,,\n", ["3 rows x 3 columns"], ["below its rows"],
    ),
    "a record with gaps after an empty row": (
        "a.csv", "name;zip;town;mail\n" + "A;50001;Ulm;a@x\n" * 9 + ";;;\nB;50002;;\n" + "C;50003;Ulm;c@x\n" * 4,
        ["14 rows x 4 columns"], ["below its rows"],
    ),
    "keys only after empty rows": (
        "a.csv", "key,n,m\nK1,1,2\nK9,3,4\n,,\nK10,,\n,,\nK11,5,6\n", ["4 rows x 3 columns"], ["below its rows"],
    ),
    "a note with a year after an empty row": (
        "a.csv", "a;b;c;d\n1;2;3;4\n4;5;6;7\n;;;\nStand;2024;;\n",
        ["2 rows x 4 columns", "1 line below its rows", "nrows=2"], [],
    ),
    "a record of texts after an empty row": (
        "a.csv", "name;zip;town;mail\n" + "A;50001;Ulm;a@x\n" * 9 + ";;;\nB;;Ulm;b@x\n" + "C;50003;Ulm;c@x\n" * 4,
        ["14 rows x 4 columns"], ["below its rows"],
    ),
    "a header that begins with #": (
        "a.tsv", "##made by hand\n#chrom\tstart\tend\nchr1\t0\t50\nchr2\t100\t150\n",
        ["2 rows x 3 columns, header in line 2", "'#chrom': text", "skiprows=1"], ["header=None"],
    ),
    "a header that begins with # and texts": ("a.csv", "#id,a,b\nx,y,z\nu,v,w\n", ["2 rows x 3", "'#id'"], []),
    "a text whose header begins with #": (
        "a.txt", "# by hand\n#id;n;town\n1;2;Ulm\n2;4;Ulm\n3;6;Ulm\n", ["3 rows x 3", "'#id': int", "skiprows=1"], [],
    ),
    "a comment of as many values": (
        "a.csv", "# made by A, B\nid,n\n1,2\n3,4\n", ["2 rows x 2 columns, header in line 2", "'id': int"], [],
    ),
    "decimals for names": (
        "a.csv", "group,0.25,0.5,0.75\nG1,1.1,1.5,1.9\nG2,2.1,2.5,2.9\nG3,3.1,3.5,3.9\n",
        ["3 rows x 4 columns", "'0.25': float, 1.1 … 3.1"], ["header=None"],
    ),
    "four decimals for names": (
        "a.csv", "land,0.1,0.25,0.5,1.0\nA,1.1,0.5,1.9,1\nB,2.1,1.5,2.9,2\nC,3.1,3,3.9,1\n",
        ["3 rows x 5 columns", "'0.25': float"], ["header=None"],
    ),
    "growing decimals without names": (
        "a.csv", "G0,0.25,0.5,0.75\nG1,1.1,1.5,1.9\nG2,2.1,2.5,2.9\nG3,3.1,3.5,3.9\n", ["4 rows x 4", "header=None"],
        [],
    ),
    "a first row of words": (
        "a.csv", "shop,n,m\nBonn,closed,closed\nA,1,2\nB,3,4\nC,5,6\n",
        ["4 rows x 3 columns", "odd: 'closed' (1)"], ["no row", "skiprows"],
    ),
    "compound units below the names": (
        "a.csv", "t,v,p\ns,m/s,kg*m^2\n1,1.5,3\n2,2.5,4\n3,3.5,5\n", ["3 rows x 3", "skiprows=[1]"], ["odd"],
    ),
    "a title above texts": (
        "a.csv", "Staff of 2024\n\nname,team,since\nAnn,IT,2010-01-11\nBo,HR,2011-02-11\nCy,IT,2012-03-11\n",
        ["3 rows x 3 columns, header in line 3", "skiprows=2"], ["more values"],
    ),
    "one column of prose": (
        "a.csv", 'user comment\n"Hello, you"\n"Well, well, well"\n"No, no, no"\n', ["3 rows x 1 columns"], ["line 2"],
    ),
    "years behind several names": (
        "a.csv",
        '"Data Source","World Indicators",\n\n"Last Updated","2023-07-25",\n\n"Country Name","Code",2001,2002,\n'
        + "".join(f'"Land {at}","C{at}",{at},5,\n' for at in range(9)),
        ["9 rows x 5 columns, header in line 5", "skiprows=4"], ["more values"],
    ),
    "quotes in values between tabs": (
        "a.tsv", "id\ttitle\tyear\n" + "".join(f'{at}\t{chr(34) * (at in (2, 6))}T{at}\t19{at}0\n' for at in range(9)),
        ["9 rows x 3 columns", "pd.read_csv('a.tsv', sep='\\t', quoting=3)"], ["fewer values"],
    ),
    "an open quote between tabs": (
        "a.tsv", 'id\ttitle\tyear\n1\t"T1\t1910\n2\tT2\t1920\n3\tT3\t1930\n', ["3 rows x 3", "quoting=3"], [],
    ),
    "quoted tabs and line ends": (
        "a.tsv", 'id\ttitle\n1\t"a\tb\nc"\n2\t"T"\n', ["2 rows x 2 columns"], ["quoting"],
    ),
    "a first letter of Windows": ("a.csv", "Öl;n\n1;2\n3;4\n".encode("cp1252"), ["cp1252", "'Öl': int"], []),
    "a first sign of Windows": ("a.csv", "€;n\n1;2\n3;4\n".encode("cp1252"), ["cp1252", "'€': int"], []),
    "a separator that Excel is told": (
        "a.csv", "sep=;\nname;n\na;1,5\nb;2,5\n", ["2 rows x 2 columns, header in line 2", "sep=';'", "skiprows=1"], [],
    ),
    "times with points": ("a.csv", "t;n\n18.00.00;1\n19.30.00;2\n09.05.10;3\n", ["'t': text"], ["date text"]),
    "times with points and no zeros": ("a.csv", "t;n\n18.30.15;1\n19.40.20;2\n", ["'t': text"], ["date text"]),
    "fractions": ("a.csv", "t,n\n1/2,1\n5/8,2\n", ["'t': text"], ["unit"]),
    "points that may stand between thousands": (
        "a.csv", "town;n;m\nA;45.173;1.5\nB;331.885;2.125\nC;284;3.111\n",
        ["points in 'n' may stand between thousands, which is not certain"], ["'m' may"],
    ),
    "commas between thousands alone, beside numbers below 1000": (
        "a.tsv", "town\tn\nA\t1,502\nB\t31,191\nC\t949\n",
        ["'n': int, 949 … 31,191", "sep='\\t', thousands=','"], ["decimal", "not certain"],
    ),
    "points between thousands alone, beside numbers below 1000": (
        "a.csv", "town, state;n\nA;1.613\nB;2.003\nC;12.221\nD;2.279\nE;1.142\nF;949\n",
        ["'n': int, 949 … 12.221", "sep=';', decimal=',', thousands='.'"], ["not certain"],
    ),
    "infinite numbers in words": (
        "a.csv", "a\nInfinity\n1\n-Infinity\n", ["'a': float, -Infinity … Infinity"], ["text"],
    ),
    "points that may stand in front of decimals, beside decimal commas": (
        "a.csv", "lat;a;b\n48.137;1,5;2,5\n48.139;2,5;3,5\n52.520;3,5;4,5\n",
        ["points in 'lat' may stand in front of decimals, which is not certain"], ["'a' may", "'b' may"],
    ),
    "commas that may stand in front of decimals, beside decimal points": (
        "a.csv", "lat;a;b\n48,137;1.5;2.5\n48,139;2.5;3.5\n52,520;3.5;4.5\n",
        ["commas in 'lat' may stand in front of decimals, which is not certain"], [],
    ),
    "points between thousands, as another column shows": (
        "a.csv", "n;m\n48.137;2.585,05\n48.139;3,5\n", ["thousands='.'"], ["not certain"],
    ),
    "euros in one column": (
        "a.csv", "price\n€1.234,50\n€99,00\n€5,10\n", ["3 with a currency ('€5,10', '€1.234,50')", "sep='\\t'"],
        ["index", "zeros"],
    ),
    "euros behind numbers in one column": (
        "a.csv", "price\n5,10 €\n6,20 €\n", ["2 with a currency ('5,10 €', '6,20 €')", "sep='\\t'"], ["index"],
    ),
    "decimal commas in one column": (
        "a.csv", "n\n48,1\n-52,5\n", ["'n': float, -52,5 … 48,1", "sep='\\t', decimal=','"], ["index"],
    ),
    "commas of texts in one column": (
        "a.csv", "town\nNew York, NY\nBoston, MA\n", ["'New York, NY', 'Boston, MA'", "sep='\\t'"], ["index"],
    ),
    "numbers of rows before one column": (
        "a.csv", "x\n1,5\n2,6\n3,5\n", ["'x': int", "'1', '2', … begin its rows without a name"], ["decimal"],
    ),
    "quoted names of rows before one column": (
        "a.csv", '"x"\n"3",5\n"7",6\n', ["'x': int, 5 … 6", "'3', '7', … begin its rows without a name"], ["decimal"],
    ),
    "commas that may stand between thousands": (
        "a.csv", "town|n\nA|1,502\nB|31,191\nC|0\n",
        ["commas in 'n' may stand between thousands, which is not certain", "decimal=','"], [],
    ),
    "commas before three decimals, and longer numbers": (
        "a.csv", "town;n\nA;1,502\nB;31191\nC;949\n", ["commas in 'n' may", "decimal=','"], ["thousands=','"],
    ),
    "commas before three decimals beside certain ones": (
        "a.csv", "town;n;m\nA;1,502;1,5\nB;31,191;2,5\n", ["decimal=','"], ["not certain"],
    ),
    "commas in texts alone": (
        "a.csv", "day|town\n1988-01-01|New York, NY\n1988-01-02|Austin, TX\n", ["sep='|')"], ["decimal"],
    ),
    "no header, whole numbers and texts of one form": (
        "a.csv", "5,name 5,7\n6,name 6,0\n7,name 7,1\n8,name 8,2\n",
        ["4 rows x 3", "holds no names", "header=None)"], [],
    ),
    "no header, a constant number": (
        "a.csv", "29779,13,one goof\n29780,13,a second\n29781,13,the last\n29799,13,none\n",
        ["4 rows x 3", "column 1: int, always 13", "header=None)"], [],
    ),
    "no header, few rows": (
        "a.txt", "92821 20200706 1200 0700 3 C\n92821 20200706 1305 0705 2.6 C\n92821 20200706 1310 0810 2.6 C\n",
        ["3 rows x 6", "column 1: int, always 20200706", "header=None"], [],
    ),
    "perhaps no header": (
        "a.csv", "1689|00i|2\n1690|00v|2\n41561|2015|1\n45804|pi|1\n",
        ["'1689': int", "every name above its numbers is a number; if that line is data, read it with header=None"], [],
    ),
    "a constant below a number of a column": ("a.csv", ",0\n0,0\n1,0\n2,0\n", ["3 rows x 2", "'0': int"], ["header="]),
    "a last row of a group": ("a.csv", "x,k,n\nA,a,1\n,b,2\nB,a,4\n,b,7\n", [], ["total"]),
    "an empty first column": ("a.csv", "x,k,n\n,a,1\n,b,2\n,c,3\n", [], ["total"]),
    "named months first, without a comma": (
        "a.csv", "d\nJan 1 2000\nMar 1 2010\n", ["'d': date text Mon D YYYY, Jan"], [],
    ),
    "named months first, a comma before the time": (
        "a.csv", 'd\n"Jan 1 2000, 10:30"\n"Mar 1 2010, 9:30"\n',
        ["date text Mon D YYYY with time, Jan 1 2000, 10:30"], [],
    ),
    "the span of days first": (
        "a.csv", "d\n02/03/2024\n31/01/2024\n05/12/2023\n",
        ["'d': date text DD/MM/YYYY (day first), 05/12/2023 … 02/03/2024, 3 distinct"], [],
    ),
    "the span of months first": (
        "a.csv", "d\n1/15/2018 10:30:15.5 PM\n1/15/2018 10:30:15.25 PM\n12/8/2017\n1/15/2018 9:00 PM\n",
        ["MM/DD/YYYY (month first), 12/8/2017 … 1/15/2018 10:30:15.5 PM, 4 distinct"], [],
    ),
    "the span of short years": (
        "a.csv", "d\n31.12.98\n01.02.03\n15.06.11\n16.06.11\n17.06.45\n",
        ["DD.MM.YY (day first), 31.12.98 … 17.06.45"], [],
    ),
    "no span of days or months": ("a.csv", "d\n02/03/2024\n03/01/2024\n", ["is not certain, e.g. '02/03/2024'"], ["…"]),
    "words of rules in prose": (
        "a.txt",
        "Dear all.\n\nThe car stood in an empty lot, none was hurt; safety is the number one concern.\n\n" * 30,
        ["it begins:"], ["what it says"],
    ),
    "settings": (
        "a.ini", "OUT:NONE\nComment=Power DO/US well-known\nURL=a.org/b-c?d=e/f\n\n" * 60, ["it begins:"], ["what it"],
    ),
    "what empty values mean": (
        "a.txt", "Words. " * 300 +
        "\n\nN/A means that nobody asked; -99 = missing.\n\nThe rate is calculated as a sum.\n",
        ["line 3: N/A means", "line 5: The rate"], [],
    ),
    "a name twice beside its number": ("a.csv", "a,a,a.1\n1,2,3\n", ["pandas calls the second 'a.2'"], []),
    "a NaN of JSON": ("a.json", '[{"a": NaN}, {"a": 1.5}, {"a": 7.0}]', ["'a': float, 1.5 … 7.0, all different, 1 NaN"],
                      ["nan"]),
    "lines of another width above the header": (
        "a.csv",
        '"Konto:";"DE12 / Giro";\n\n"Von:";"01.01.2024";\n"Stand vom 31.01.2024:";"1.234,56 EUR";\n\n"Tag";"Name";'
        '"Text";"Betrag";\n' + "".join(f'"{at:02}.01.2024";"N{at}";"a; b";"-1.{at:03},50";\n' for at in range(1, 20)),
        ["CSV with ';': 19 rows x 5 columns, header in line 6", "'Betrag': float", "sep=';'", "skiprows=5"], ["x 1 "],
    ),
    "a longer line of values above the header": (
        "a.csv",
        '"EXTF";700;21;"Stapel";;"RE";20240101;"EUR"\nUmsatz;Kennzeichen;Konto;Text\n'
        + "".join(f'{at},25;"S";{1000 + at};"a, {at}"\n' for at in range(20)),
        ["CSV with ';': 20 rows x 4 columns, header in line 2", "'Umsatz': float, 0,25 … 19,25", "skiprows=1"], [],
    ),
    "commas in the second line of a title": (
        "a.csv",
        "Statistics of the region\nAs of January 5, 2024\nname;year;value\n" + "a;2001;1,5\nb;2002;2,5\n" * 5,
        ["CSV with ';': 10 rows x 3 columns, header in line 3", "decimal=',', skiprows=2"], [],
    ),
    "commas in the third line of a title": (
        "a.csv",
        "Report\nOf 2024\nSource: Office, Berlin\n\nname,year,value\n" + "a,2001,1.5\nb,2002,2.5\n" * 5,
        ["CSV: 10 rows x 3 columns, header in line 5", "skiprows=4"], [],
    ),
    "commas in lines above semicolons": (
        "a.csv",
        "Station,Berlin\nLat,52.45\n\nname;year;value\n" + "a;2001;1,5\nb;2002;2,5\n" * 8,
        ["CSV with ';': 16 rows x 3 columns, header in line 4"], [],
    ),
    "an empty name behind a title": (
        "a.csv", "Series of a rate\nType: percent\n\nid,year,value,\n" + "a,2010,5.5\nb,2011,6\n" * 5,
        ["10 rows x 4 columns, header in line 4", "skiprows=3"], [],
    ),
    "a comma in a name between semicolons": (
        "a.csv", "day;Temperature, °C\n" + "".join(f"{at:02}.03.2024;{at},5\n" for at in range(1, 20)),
        ["CSV with ';': 19 rows x 2 columns", "'Temperature, °C': float, 1,5 … 19,5"], [],
    ),
    "commas in a text of one column": ("a.csv", "comment\nwell, no\nyes\nso, so, so\n", ["3 rows x 1"], ["usecols"]),
    "points between thousands of later rows": (
        "a.csv", "id;n\n" + "1;589,81\n" * 300 + "2;12.345,50\n" * 100, ["'n': float, 589,81 … 12.345,50",
        "decimal=',', thousands='.'"], [],
    ),
    "decimal commas of later rows": (
        "a.csv", "id;n\n" + "".join(f"1;{at}\n" for at in range(300)) + "2;3,5\n",
        ["'n': float, 0 … 299", "decimal=','"], [],
    ),
    "commas between thousands of later rows": (
        "a.csv", "id,n\n" + "".join(f"1,{at}\n" for at in range(600)) + '2,"1,234"\n',
        ["'n': int, 0 … 1,234", "thousands=','"], [],
    ),
    "decimal commas in quotes": (
        "a.csv", 'name,len,weight\nA,"30,6","7,229"\nB,"8,5","9,118"\nC,12,"1,600"\n',
        ["'len': float, 8,5 … 30,6", "'weight': float, 1,600 … 9,118", "decimal=','"], ["thousands"],
    ),
    "points in one of several columns": (
        "a.csv", "version;price;sum\n5.8;1,25;3,5\n5.10;2,25;4,5\n4.1;3,5;5\n",
        ["'version': number-like text, 3 with a decimal point", "'price': float, 1,25", "decimal=','"], ["thousands"],
    ),
    "seasons": (
        "a.csv", "season,n\n" + "".join(f"{at}-{(at + 1) % 100:02},1\n" for at in range(1990, 2024)),
        ["'season': text, all different, e.g. '1990-91'"], ["date text"],
    ),
    "seasons that may be months": ("a.csv", "season,n\n2003-04,1\n2004-05,2\n", ["'season': text"], ["date text"]),
    "months": ("a.csv", "m,n\n2003-04,1\n2003-05,2\n", ["'m': date text YYYY-MM, 2003-04 … 2003-05"], []),
    "part numbers": ("a.csv", "p,n\n8267-60-57,1\n4136-67-11,2\n", ["'p': text"], ["date text"]),
    "dates of zeros": (
        "a.csv", "d\n" + "2024-03-01\n" * 20 + "0000-00-00\n", ["date text YYYY-MM-DD", "odd: '0000-00-00' (1)"], [],
    ),
    "full-width digits": (
        "a.csv", "城市,数量\nA,１０\nB,９０\nC,４５\n".encode("cp932"),
        ["'数量': number-like text, 3 with other digits than 0–9, no numbers for pandas ('１０', '９０')"], ["int"],
    ),
    "dates with dashes": (
        "a.csv", "d,n\n01-02-2024,1\n31-01-2024 10:30,2\n", ["'d': date text DD-MM-YYYY (day first)"], [],
    ),
    "parts of seconds": (
        "a.csv", "d,n\n31.01.2024 10:30:01.250,1\n01.02.2024 9:05:00.5,2\n", ["date text DD.MM.YYYY (day first)"], [],
    ),
    "times of one day with the name of a month": (
        "a.csv", "d,n\n01-Jan-2024 15:00,1\n01-Jan-2024 09:00,2\n01-Jan-2024 10:00,3\n",
        ["01-Jan-2024 09:00 … 01-Jan-2024 15:00"], [],
    ),
    "times before and after noon": (
        "a.csv", "d,n\n01-Jan-2024 1:00 PM,1\n01-Jan-2024 12:30 AM,2\n01-Jan-2024 10:00 AM,3\n",
        ["01-Jan-2024 12:30 AM … 01-Jan-2024 1:00 PM"], [],
    ),
    "numbers that differ in late digits": (
        "a.csv", "v\n0.100000000000\n0.100000000059\n", ["'v': float, 0.1 … 0.100000000059, all different"], [],
    ),
    "a wrong byte in UTF-8": (
        "a.csv", b"id,town\n" + "1,Orléans été\n".encode() * 50 + "2,Béziers\n".encode("latin-1"),
        ["CSV, utf-8 with bytes that are not in 1 place: ", "Orléans été", "encoding_errors='replace')"], ["cp932"],
    ),
    "wrong bytes in UTF-8 of other letters": (
        "a.csv", "id,город\n".encode() + "1,Москва\n".encode() * 50 + b"2,\xff\xfe\n3,4\n",
        ["not in 2 places", "Москва"], [],
    ),
    "a short text with a line of another encoding": (
        "a.csv", "name,city\nJosé,München\n".encode() + "André,Köln\n".encode("cp1252") + "Zoë,Łódź\n".encode(),
        ["CSV, utf-8 with bytes that are not in 2 places", "'München'", "encoding_errors='replace'"], ["latin-1"],
    ),
    "a letter that is cut at the end": ("a.csv", b"id,town\n1,Orl\xc3\xa9ans\n2,Orl\xc3", ["CSV: 2 rows"], ["utf-8"]),
    "a wrong byte in a late piece of UTF-8": (
        "a.csv", b"id,town\n" + "1,Orléans\n".encode() * 800_000 + b"2,B\xe9ziers\n",
        ["not in 1 place", "encoding_errors='replace'"], [],
    ),
    "blanks between thousands": (
        "a.csv", "town;n;m\nA;52 932;1 956,89\nB;2 464 767;612,5\nC;931;2 000\n",
        ["'n': int, 931 … 2 464 767", "'m': float, 612,5 … 2 000", "sep=';', decimal=',', thousands=' '"], [],
    ),
    "apostrophes between thousands": (
        "a.csv", "town;n\nA;52'932.50\nB;464'767\nC;1'931\n", ["'n': float, 1'931 … 464'767", 'thousands="\'"'], [],
    ),
    "blanks between thousands and codes": (
        "a.csv", "phone;n\n030 123;1 956\n040 4567;612\n07 12;12 345\n", ["thousands=' ', dtype={'phone': str}"], [],
    ),
    "numbers of companies": ("a.csv", "id;n\n552 100 554;1\n732 829 320;2\n", ["'id': number-like"], ["thousands='"]),
    "narrow blanks between thousands": (
        "a.csv", "n;m\n52\u202f932;2\u202f752,41 €\n1\u202f464;12,5 €\n",
        ["'n': number-like text, 2 with blanks or ' between thousands", "'m': number-like text, 2 with a currency"],
        ["thousands='", "decimal"],
    ),
    "a minus behind": (
        "a.csv", "n,m\n1.5-,1\n7-,2\n9,3\n", ["'n': number-like text, 1 plain numbers (9 … 9), 2 with '-' behind"], [],
    ),
    "several units": (
        "a.csv", "w,r\n0.5 kg,$1.5M\n500 g,$200K\n700 g,$59.5M\n2.5 kg,$5800K\n",
        ["4 with a unit ('0.5 kg', '500 g')", "4 with a currency ('$1.5M', '$200K')"], [],
    ),
    "units with a power, and quarters": (
        "a.csv", "w,q,h\n1 m2,2000Q1,2000H1\n4 m2,2000Q2,2000H2\n9 km2,2000q3,2001H1\n",
        ["3 with a unit ('1 m2', '9 km2')", "'q': text", "'h': text"], [],
    ),
    "the ends of numbers with decimal commas": (
        "a.csv", "c;p\nA;50,25 €\nB;900,5 €\nC;1.200,5 €\n", ["3 with a currency ('50,25 €', '1.200,5 €')"], [],
    ),
    "JSON lines in a .json": (
        "a.json", '{"a": 1}\n{"a": 2}\n{"a": 3}\n',
        ["JSON lines: 3 objects, to be read with pd.read_json('a.json', lines=True)", "'a': int, 1 … 3"], [],
    ),
    "JSON in one line with more behind": ("a.json", '{"a": 1}{"a": 2}', ["not readable as json: Extra data"], []),
    "JSON of many lines with more behind": (
        "a.json", '{\n "a": 1\n}\n{\n "a": 2\n}\n', ["not readable as json: Extra data: line 4"], ["JSON lines"],
    ),
    "JSON, compressed": ("a.json.gz", gzip.compress(b'[{"a": 1}, {"a": 2}]', mtime=0), ["JSON: list of 2 objects"], []),
    "a log, compressed": (
        "a.log.xz", lzma.compress("Größe one\nplain words, two\n".encode()),
        ["text of 2 lines", "| plain words, two", "to be read with lzma.open('a.log.xz', 'rt')"], ["binary"],
    ),
    "JSON of Windows letters": ("a.json", '[{"a": "Köln"}, {"a": "Düren"}]'.encode("cp1252"), ["cp1252", "Köln"], []),
    "JSON in UTF-16": ("a.json", '[{"a": "Köln"}, {"a": "x"}]'.encode("utf-16"), ["utf-16", "Köln"], []),
    "UTF-16 without a mark": ("a.csv", GERMAN.encode("utf-16-be"), ["encoding='utf-16-be'", "Köln"], []),
    "the sign of the euro": ("a.csv", "name;p\nCafé;€ 5\nx;€ 6\n".encode("iso8859_15"), ["iso8859_15", "€ 5"], []),
    "Japanese with escapes": (
        "a.csv", "店舗,売上\n東京,100\n大阪,200\n".encode("iso2022_jp"), ["encoding='iso2022_jp'", "'店舗'"], [],
    ),
    "a table of unknown name, compressed": (
        "a.gz", gzip.compress(b"a,b\n1,2\n3,4\n5,6\n", mtime=0),
        ["CSV: 3 rows x 2 columns", "to be read with pd.read_csv('a.gz')"], [],
    ),
    "no table, compressed": ("a.gz", gzip.compress(b"\0\1\2", mtime=0), ["binary"], []),
    "totals with labels in two columns": (
        "a.csv", "cat,item,v\nA,x,1\nA,y,2\nA,Subtotal,3\nB,x,4\nB,y,5\nB,Subtotal,9\nTotal,,12\n",
        ["3 rows with 'Subtotal', 'Total' in 'cat' and 'item' are totals: 'v' is the sum of other rows"], [],
    ),
    "no totals in two columns": ("a.csv", "cat,item,v\nA,x,1\nA,Total,2\nTotal,x,8\nB,y,5\n", [], ["totals"]),
    "rows with a word for a number behind a blank line": (
        "a.csv", "store,city,sales\nA,X,5\nB,Y,6\nC,Z,7\nF,Z,7\nG,Z,8\n\nD,X,closed\nE,Y,8\n",
        ["7 rows x 3 columns", "odd: 'closed' (1)"], ["2 tables", "nrows"],
    ),
    "names of groups that repeat": (
        "a.csv", ",v,v,yr,yr\n,sum,mean,min,max\nreg,,,,\nN,27,4.5,2020,2021\nS,39,6.5,2020,2021\nU,3,2.5,2019,2021\n",
        ["its second line holds more names, with header=[0, 1] they are pairs: ,sum,mean,min,max"], [],
    ),
    "comments among rows": (
        "a.csv", "id,v\n1,2\n# checked\n2,3\n3,4\n",
        ["1 line among its rows begins with '#', as comments do, which comment='#' leaves out: # checked"], ["fewer"],
    ),
    "columns of one pattern with infinite numbers": (
        "a.csv", "q1,q2,q3,q4,q5\n1,inf,3,-inf,5\n2,3,4,5,6\n", ["5 columns, int/float, -inf … inf"], ["not readable"],
    ),
    "no suffix": ("noending", "plain words", ["text of 1 line"], []),
    "binary": ("raw.bin", "a\0b", ["binary"], []),
    "torn workbook": ("a.xlsx", "PK\x03\x04 torn", ["not readable as xlsx"], []),
    "torn Parquet": ("a.parquet", "PAR1", ["not readable as parquet"], []),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE)
def test_a_description_says_what_the_text_of_a_file_shows(case, tmp_path):
    name, content, said, unsaid = TABLE[case]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    ((found,), _) = Describer(tmp_path, apart=False).describe_all([(name, name)], seconds=20)

    text = "\n".join([found["headline"], *found["lines"]])
    assert [one for one in said if one not in text] == [], text
    assert [one for one in unsaid if one in text] == [], text


@pytest.mark.parametrize("columns", [60, 200])
def test_code_that_describes_a_wide_table_is_told_how_to_read_it(columns, tmp_path):
    names = [f"{'abcdefghij'[at % 10]} {at} of a town, by its {'words ' * 9}{at}" for at in range(columns)]
    rows = [";".join(f"{(at + 1) * (one + 1) % 97},{one % 10}" for one in range(columns)) for at in range(60)]
    (tmp_path / "a.csv").write_text("\n".join([";".join(names), *rows, "", "Source: a register" + ";" * (columns - 1)]))

    told = Describer(tmp_path, apart=False).describe(tmp_path / "a.csv")

    assert 4000 < len(told) <= 6000
    call = f"to be read with pd.read_csv({str(tmp_path / 'a.csv')!r}, sep=';', decimal=',', nrows=60)"
    assert told.endswith(f"\n  {call}")
    assert "\n  1 line below its rows, no rows of it:\n  | Source: a register" in told
    assert "\n  'a 0 of a town" in told
    assert told.count(" of a town") > 50


def test_a_header_of_many_equal_names_is_described_at_once(tmp_path, cpu_seconds):
    (tmp_path / "a.csv").write_text(f"{'x,' * 20_000}y\n{'1,' * 20_000}2\n")
    began = cpu_seconds()

    assert "1 rows x 20001 columns" in describe(tmp_path, "a.csv")[0]["a.csv"]
    assert cpu_seconds() - began < 5  # it took more than 10 seconds, for each name was compared with all others


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"in/x.csv": "a,b\n1,2\n3,4\n"}, ["ZIP archive of 'in/x.csv': CSV: 2 rows x 2", "pd.read_csv('x.csv.zip')"]),
        ({"x.csv": GERMAN}, ["'Umsatz': float, 99,90", "('x.csv.zip', sep=';', decimal=',', thousands='.')"]),
        ({"x.csv": "a\n1\n", "y.csv": "b\n1\n"}, ["ZIP archive of 2 files", "'x.csv': 4 bytes"]),
        ({"x.csv": "a\n1\n", "y.csv": "b\n1\n"}, ["opened with zipfile.ZipFile('x.csv.zip').open('x.csv')"]),
        ({"x.bin": "a"}, ["ZIP archive of 1 file", "'x.bin': 1 byte"]),
        (
            {"d/": "", "d/x.csv": GERMAN, "__MACOSX/d/._x.csv": "\0", "d/.DS_Store": "\0"},
            [
                "ZIP archive of 'd/x.csv': CSV with ';'",
                "(zipfile.ZipFile('x.csv.zip').open('d/x.csv'), sep=';', decimal=",
            ],
        ),
        (
            {"README.md": "Some words.", "x.csv": GERMAN},
            [
                "ZIP archive of 2 files, one is a table of text, 'x.csv': CSV with ';'",
                "'README.md': 11 bytes",
                "pd.read_csv(zipfile.ZipFile('x.csv.zip').open('x.csv'), sep=';', decimal=',', thousands='.')",
            ],
        ),
        ({}, ["ZIP archive of 0 files"]),
    ],
    ids=["one table", "semicolons", "two tables", "a file of them", "no table", "of macOS", "beside a text", "empty"],
)
def test_an_archive_of_a_single_table_is_described_like_the_table(members, said, tmp_path):
    with zipfile.ZipFile(tmp_path / "x.csv.zip", "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)

    told = describe(tmp_path, "x.csv.zip")[0]["x.csv.zip"]

    assert [one for one in said if one not in told] == [], told


LETTERS = {
    "gb18030": "日期,城市,销售额\n2024-01-01,北京,1200\n2024-01-02,上海,900\n2024-01-03,广州,700\n",
    "cp932": "日付,都市,売上\n2024-01-01,東京,1200\n2024-01-02,大阪,900\n2024-01-03,名古屋,700\n",
    "cp949": "날짜,도시,매출\n2024-01-01,서울,1200\n2024-01-02,부산,900\n2024-01-03,대구,700\n",
    "big5": "日期,城市,銷售額\n2024-01-01,臺北,1200\n2024-01-02,高雄,900\n2024-01-03,臺中,700\n",
    "cp1251": "дата,город,продажи\n2024-01-01,Москва,1200\n2024-01-02,Казань,900\n2024-01-03,Самара,700\n",
    "cp1253": "ημερομηνία,πόλη,πωλήσεις\n2024-01-01,Αθήνα,1200\n2024-01-02,Πάτρα,900\n",
    "cp1250": "město,Počet,Část\nPlzeň,5,Bory\nČeské Budějovice,7,Kroměříž\n",
    "cp1254": "şehir,adet,Bölge\nİstanbul,5,Ege\nÇanakkale,7,Muğla\n",
    "cp1257": "miestas,n,Šalis\nPanevėžys,5,Šiauliai\nKėdainiai,7,Ąžuolų\n",
    "iso8859_2": "miasto,Ilość,Źródło\nŁódź,5,Ż\nŚwidnica,7,Częstochowa\n",
    "cp850": "ort,Größe,Länge\nKöln,5,Müller\nGießen,7,Grün\n",
    "mac_roman": "ort,Größe,Länge\nKöln,5,Müller\nGießen,7,Grün\n",
    "cp1252": "Datum,Straße,Größe\n2024-01-01,Königsweg,12\n2024-01-02,Ährenweg,3\n",
}


@pytest.mark.parametrize(("encoding", "text"), LETTERS.items(), ids=LETTERS)
def test_the_encoding_of_a_table_is_told_by_its_letters(encoding, text, tmp_path):
    head, _, rest = text.partition("\n")
    (tmp_path / "a.csv").write_bytes(f"{head}\n{rest * 40}".encode(encoding))

    ((found,), _) = Describer(tmp_path, apart=False).describe_all([("a.csv", "a.csv")], seconds=20)

    assert encoding in found["headline"]
    assert found["columns"] == head.split(",")
    assert f"encoding='{encoding}'" in "\n".join(found["lines"])


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "São Paulo,München,Malmö,København,Logroño,Orléans,Reykjavík,Forlì,Besançon"),
        ("cp1252", "Þórshöfn,Ísafjörður,Hafnarfjörður"),
        ("cp1252", "it’s “fine” – ‘ok’… 5 €,±3 µm,½ m²,20 °C"),
        ("cp1252", "coded “Other Misc.” here,plain"),
        ("cp1252", "fine dust (µg/m3),Sun Research®"),
        ("cp1252", "one,©"),
        ("cp1252", "“both”,well…,so…,word–word"),
    ],
)
def test_texts_of_the_west_are_read_as_such(encoding, text, tmp_path):
    (tmp_path / "a.csv").write_bytes(
        f"name,n\n{''.join(f'{part},1{chr(10)}' for part in text.split(','))}".encode(encoding)
    )

    told = describe(tmp_path, "a.csv")[0]["a.csv"]

    assert f"CSV, {encoding}: " in told
    assert text.split(",")[0] in told


def test_an_encoding_that_the_letters_do_not_tell_is_named_with_the_other(tmp_path):
    (tmp_path / "a.csv").write_bytes("város,n\nGyőr,5\nHódmezővásárhely,7\nPécs,2\n".encode("cp1250"))

    assert "CSV, cp1252 or cp1250, which its letters don't tell: " in describe(tmp_path, "a.csv")[0]["a.csv"]


TOTALS = (
    "Total general|TOTAL:|Grand total|Summe|Gesamt|Insgesamt|Ensemble|Somme|Suma|Totale complesso|Totaal|Totalt|Summa|"
    "Yhteensä|Celkem|Razem|Ogółem|Összesen|Toplam|Σύνολο|Итого|Всего|Усього|合计|总计|小计|合計|합계|Tổng cộng|Jumlah|"
    "Gesamtergebnis|Eindtotaal|Celkový součet|Общий итог|Hovedtotal|Végösszeg|総計|총합계"
)


@pytest.mark.parametrize("label", TOTALS.split("|"))
def test_a_total_is_known_by_its_label_and_its_sum(label, tmp_path):
    (tmp_path / "a.csv").write_text(f'x;n\nA;"1.200,5"\nB;"800"\n{label};2.000,5\n', encoding="utf-8")

    whole = " " not in label  # beside another word it may be a name
    said = "is a total, 'n' the sum of the others" if whole else "may be a total ('n' is the sum of the others)"
    assert f"the last row {said}" in describe(tmp_path, "a.csv")[0]["a.csv"]


def test_the_table_is_as_long_as_it_should_be():
    assert len(TABLE) >= 60


def test_the_rows_of_a_large_file_are_estimated_from_its_beginning(tmp_path):
    line = b"12345678,abcdefghij\n"
    with open(tmp_path / "a.csv", "wb") as file:
        file.write(b"id,name\n" + line * 3_100_000)
        for end in range(200_000_000, 600_000_001, 200_000_000):  # takes no room on the disk
            file.seek(end)
            file.write(line)

    told = describe(tmp_path, "a.csv")[0]["a.csv"]

    assert "CSV: about 30000000 rows x 2 columns, judged by its first 31250 rows" in told


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_the_rows_of_a_file_that_is_counted_are_told_exactly(end, last, tmp_path):
    rows = [f"{at},some words of a name {at}" for at in range(300_000)]
    (tmp_path / "a.csv").write_bytes((end.join(["id,name", *rows]) + end * last).encode())

    assert "CSV: about 300000 rows x 2 columns" in describe(tmp_path, "a.csv")[0]["a.csv"]


def test_rows_of_several_lines_are_counted_as_rows_and_the_last_one_may_be_cut(tmp_path):
    rows = [f'{at},"Good.\nI liked it.\n\nAgain {at}.",{at % 5}' for at in range(60_000)]
    (tmp_path / "a.csv").write_text("\n".join(["id,text,stars", *rows]))

    told = describe(tmp_path, "a.csv")[0]["a.csv"]

    assert "CSV: about 60000 rows x 3 columns" in told
    assert not [one for one in ("missing", "fewer values", "blanks around") if one in told]


def describe(folder, *names):
    found, joins = Describer(folder, apart=False).describe_all([(name, name) for name in names], seconds=20)
    return {one["name"]: "\n".join([one["headline"], *one["lines"]]) for one in found}, joins


CELLS = "<table><tr><th>{0}<th>{1}</tr><tr><td>{2}<td>{3}</tr><tr><td>{4}<td>{5}</tr></table>"
PAGES = {
    "thousands": CELLS.format("shop", "n", "A", "1,234", "B", "1,000,000"),
    "commas in a text": CELLS.format("shop", "n", "A", "1,234", "B", "about 5"),
    "fixed blanks": CELLS.format("the&nbsp;shop", "n", "a&nbsp;b", "1&nbsp;000", "b &nbsp; c", "2"),
    "footnotes": CELLS.format("shop<sup>1</sup>", "n", "A<sup>[2]</sup>", "12<sup>3</sup>", "B", "4"),
    "decimal commas": CELLS.format("Ort", "n", "Köln", "1.234,5", "Düren", "1,7"),
    "decimal commas and dates": CELLS.format("Tag", "n", "1.2.2011", "1.234,5", "2.2.2011", "1,7"),
    "leading zeros": CELLS.format("zip", "n", "01067", "1", "50667", "2"),
    "missing": CELLS.format("a", "b", "", "n/a", "x", "1"),
    "UTF-8 that is not declared": CELLS.format("Straße", "n", "Süd", "1", "Nord", "2"),
    "names twice": CELLS.format("a", "a", "1", "2", "3", "4"),
    "no header": CELLS.format("a", "n", "x", "1", "y", "2").replace("<th>", "<td>"),
    "data only": CELLS.format("1.5", "x", "2.5", "x", "3.5", "y").replace("<th>", "<td>"),
    "header of two rows": "<table><thead><tr><th rowspan=2>a<th colspan=2>n</tr><tr><th>x<th>x</tr></thead>"
    "<tr><td>A<td>1<td>2</tr><tr><td>B<td>3<td>4</tr></table>",
    "title above the header": "<table><thead><tr><th colspan=3>Largest cities</tr>"
    "<tr><th>city<th>pop<th>pop</tr></thead><tr><td>A<td>1<td>2</tr><tr><td>B<td>3<td>4</tr></table>",
    "title above two header rows": "<table><thead><tr><th colspan=3>Largest</tr><tr><th rowspan=2>a<th colspan=2>n</tr>"
    "<tr><th>x<th>y</tr></thead><tr><td>A<td>1<td>2</tr><tr><td>B<td>3<td>4</tr></table>",
    "header beside an empty one": "<table><thead></thead>" + CELLS.format("a", "n", "A", "1", "B", "2")[7:],
    "footer": "<table><thead><tr><th>a<th>n</tr></thead>"
    "<tfoot><tr><td>all<td>3</tr></tfoot><tbody><tr><td>A<td>1</tr><tr><td>B<td>2</tr></tbody></table>",
    "ragged": "<table><tr><th>a<th>n</tr><tr><td>A<td>1</tr><tr><td>B<td>2<td>3</tr><tr><td>C<td>4<td>5</tr></table>",
    "after an empty and a hidden one": "<table><tr></tr></table><table style='display: none'><tr><td>q</table>"
    + CELLS.format("a", "b", "1", "2", "3", "<span style='display:none'>0</span>4"),
    "in another one": f"<table><tr><td>menu<td>{CELLS.format('a', 'b', '1', '2', '3', '4')}</tr></table>",
}


def test_rows_that_one_row_makes_long_count_as_long(tmp_path):
    pytest.importorskip("lxml")
    rows = "<tr><td colspan=400000>x</tr>" + "<tr><td>1</tr>" * 3000
    (tmp_path / "a.html").write_text(f"<html><body><table>{rows}</table>", encoding="utf-8")

    assert "its tables have more than 1000000 cells" in describe(tmp_path, "a.html")[0]["a.html"]


@pytest.mark.parametrize("case", PAGES)
def test_a_table_of_a_page_is_described_as_the_named_call_reads_it(case, tmp_path):
    pytest.importorskip("lxml")
    path = tmp_path / "a.html"
    path.write_text(f"<html><body>{PAGES[case]}", encoding="utf-8")
    told = describe(tmp_path, "a.html")[0]["a.html"]
    (call,) = re.findall(r"to be read with (.*)", told)

    read = eval(call.replace("'a.html'", "path"), {"pd": pd, "path": path})

    assert f": {len(read)} rows x {len(read.columns)} columns" in told
    for name, values in read.items():
        repeated = isinstance(name, str) and name.endswith(".1")
        said = repr(name.removesuffix(".1") if repeated else name)
        kind = {"i": "int", "f": "(int|float)"}.get(values.dtype.kind, "(date |number-like )?text")
        assert re.search(rf"^  (column )?{re.escape(said)}: {kind}", told, re.M), told
        texts = [one for one in values.dropna() if isinstance(one, str)]
        assert [text for text in texts if repr(text) not in told and not re.fullmatch(r"[\d.]+", text)] == []


def test_a_workbook_is_told_sheet_by_sheet_with_its_true_header(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "June"
    for row in (
        ["Report of June"],
        [],
        ["day", "units"],
        [datetime.date(2024, 6, 1), 5],
        [datetime.date(2024, 6, 2), 7],
    ):
        book.active.append(row)
    book.create_sheet("Empty")
    book.save(tmp_path / "a.xlsx")

    told = describe(tmp_path, "a.xlsx")[0]["a.xlsx"]

    assert "2 sheets; pd.read_excel without sheet_name reads the first one alone" in told
    assert "sheet 'June': 2 rows x 2 columns, header in line 3" in told
    assert "'units': int, 5 … 7" in told
    assert "pd.read_excel('a.xlsx', sheet_name='June', skiprows=2)" in told
    assert "sheet 'Empty': empty" in told


def test_a_database_is_told_table_by_table(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.execute('CREATE TABLE "odd name" (id INTEGER PRIMARY KEY, val REAL)')
        database.execute('INSERT INTO "odd name" VALUES (1, 2.5)')
        database.execute("CREATE TABLE sqlite3x (id INTEGER)")
        database.commit()

    told = describe(tmp_path, "a.db")[0]["a.db"]

    assert "table 'sqlite3x'" in told
    assert "table 'odd name': 1 rows x 2 columns" in told
    assert "'val': REAL, always 2.5" in told
    assert "primary key: 'id'" in told


def test_a_view_of_more_rows_than_can_be_counted_is_told_by_its_first_ones(tmp_path):
    endless_view(tmp_path / "a.db")

    ((found,), _) = Describer(tmp_path, apart=False).describe_all([("a.db", "a.db")], seconds=20)

    told = "\n".join(found["lines"])
    count = re.search(r"view 'v': more than (\d+) rows x 1 columns, judged by its first \1 rows", told)
    assert f"'x': any, 1 … {count[1]}, all different" in told
    assert not found["problem"]


def test_of_a_view_without_a_row_in_time_the_columns_are_told(tmp_path):
    endless_view(tmp_path / "a.db", "max(x) AS most, min(x) AS least")

    assert "view 'v': not read: interrupted; columns: 'most', 'least'" in describe(tmp_path, "a.db")[0]["a.db"]


def test_what_a_full_text_index_keeps_is_no_table(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        if database.execute("SELECT sqlite_version() < '3.37'").fetchone()[0]:
            pytest.skip("SQLite tells this from 3.37 on")
        database.execute("CREATE VIRTUAL TABLE notes USING fts5(body)")
        database.execute("INSERT INTO notes VALUES ('hello')")
        database.commit()

    told = describe(tmp_path, "a.db")[0]["a.db"]

    assert "SQLite with 1 table" in told
    assert "table 'notes': 1 rows x 1 columns" in told
    assert "notes_" not in told


def test_columns_that_a_database_computes_are_columns(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.execute("CREATE TABLE t (net REAL, gross REAL GENERATED ALWAYS AS (net * 2) STORED, land TEXT)")
        database.executemany("INSERT INTO t (net, land) VALUES (?, ?)", [(1.0, "DE"), (2.5, "FR")])
        database.commit()

    told = describe(tmp_path, "a.db")[0]["a.db"]

    assert "2 rows x 3 columns" in told
    assert "'gross': REAL, 2.0 … 5.0" in told
    assert "'land': TEXT, all different: 'DE', 'FR'" in told


def workbook(path, rows):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)


def test_cells_of_a_workbook_are_told_as_pandas_reads_them(tmp_path):
    day = datetime.datetime(2024, 1, 5)
    rows = [["day", "text", "share", "mixed"], [day, "2024-01-05", 0.5, day], [day, "2024-01-06", "#DIV/0!", "later"]]
    workbook(tmp_path / "a.xlsx", rows)

    told, read = describe(tmp_path, "a.xlsx")[0]["a.xlsx"], pd.read_excel(tmp_path / "a.xlsx")

    assert "'day': dates, no text, 2024-01-05 00:00:00 … 2024-01-05 00:00:00" in told
    assert "'text': date text YYYY-MM-DD, 2024-01-05 … 2024-01-06" in told
    assert "'share': float, always 0.5, 1 missing" in told
    assert "cells with an error, which pandas reads as nan: #DIV/0! 1" in told
    assert "'mixed': date" not in told
    assert read["day"].dtype.kind == "M"
    assert read["share"].isna().sum() == 1


def test_formulas_without_values_and_names_that_are_no_texts_are_named(tmp_path):
    rows = [["land", 2020, datetime.datetime(2024, 1, 1), "sum"], ["A", 1, 3, "=B2+C2"], ["B", 2, 4, "=B3+C3"]]
    workbook(tmp_path / "a.xlsx", rows)

    told, read = describe(tmp_path, "a.xlsx")[0]["a.xlsx"], pd.read_excel(tmp_path / "a.xlsx")

    assert "  2 formulas without a stored value, such as =B2+C2, which pandas reads as nan" in told
    assert "names that are no texts, but numbers or dates: 2020, datetime.datetime(2024, 1, 1, 0, 0)" in told
    assert list(read)[1:3] == [2020, datetime.datetime(2024, 1, 1)]
    assert read["sum"].isna().all()


DAY = datetime.datetime(2024, 1, 1)
BREAKS = [[at, f"one{sign}two {at}", at * 2] for at, sign in enumerate(["\n", "\r\n", "\u2028", "\x85"] * 4)]
REPORT = [["Region", "Product", "Amount"], *([f"R{at % 3}", f"P{at}", at * 10] for at in range(12))]
YEARS = [str(year) for year in range(1990, 2010)]
SHEETS = {  # fmt: off
    # name: (rows, what is said, what is not said)
    "line ends in cells": (
        [["id", "comment", "n"], *BREAKS], ["16 rows x 3 columns", "'n': int, 0 … 30"], ["fewer values", "missing"],
    ),
    "line ends in names": (
        [["Region", "Sales\n(EUR)", "Zip\nof it"], ["N", 1.5, "01"], ["S", 2.5, "02"]],
        ["'Sales\\n(EUR)': float", "dtype={'Zip\\nof it': str}"], ["'Sales (EUR)'"],
    ),
    "dates above a note": (
        [["Date", "n"], *([DAY + datetime.timedelta(at), at] for at in range(9)), [], ["Source: the ministry, in May"]],
        ["'Date': dates, no text, 2024-01-01", "nrows=9"], [],
    ),
    "dates and a few texts": (
        [["when", "n"], *([DAY + datetime.timedelta(at), at] for at in range(9)), ["unknown", 5], ["n/a", 6]],
        ["'when': 9 dates and 1 text, "], ["date text"],
    ),
    "dates and missing ones": ([["when"], [DAY], ["n/a"], ["NA"]], ["'when': dates, no text"], []),
    "times and durations": (
        [["at", "long"], *([datetime.time(at, 30), datetime.timedelta(hours=30 + at)] for at in range(9))],
        ["'at': times, no text", "'long': durations, no text"], [],
    ),
    "booleans and their number": (
        [["day", "here", "late"], *([DAY + datetime.timedelta(at), at > 2, at > 4] for at in range(9)), [None, 6]],
        ["'here': 9 booleans and 1 number, 3 values: 'True' (6)", "'late': bool, 2 values: 'False' (5)"], ["': text"],
    ),
    "a name of dates and of texts": (
        [["d", "d"], *([DAY, f"t{at}"] for at in range(9))],
        ["'d': dates, no text", "'d': text, all different"], ["'d': dates, no text, all different"],
    ),
    "an empty column in front of a title": (
        [[None, "Sales report 2024"], [], *([None, *row] for row in REPORT)],
        ["12 rows x 3 columns, header in line 3", "'Region': text", "skiprows=2, usecols=range(1, 4))"], ["Unnamed"],
    ),
    "an empty column in front": (
        [[None, *row] for row in REPORT], ["12 rows x 3 columns", "usecols=range(1, 4))"], ["Unnamed"],
    ),
    "an empty column in front of two tables": (
        [[None, *row] for row in ([], ["Sales"], ["day", "n"], [1, 5], [2, 6], [], ["Shops"], ["city", "n"], ["O", 7])],
        ["2 tables, one below the other", "skiprows=2, nrows=2, usecols=range(1, 3))"], [],
    ),
    "a title of two cells": (
        [["Data Source", "World Indicators"], [], ["Last Updated Date", DAY], [], ["Country Name", "Code", *YEARS],
         *([one, one[:2], *range(20)] for one in ("Aruba", "Chad", "Peru"))],
        ["3 rows x 22 columns, header in line 5", "skiprows=4"], [],
    ),
    "one formula without a value": (
        [["k", "n"], ["a", 3], ["b", 4], ["Total", "=SUM(B2:B3)"]],
        ["1 formula without a stored value, such as =SUM(B2:B3), which pandas reads as nan"], [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SHEETS)
def test_a_sheet_is_told_by_the_values_of_its_cells(case, tmp_path):
    rows, said, unsaid = SHEETS[case]
    workbook(tmp_path / "a.xlsx", rows)

    text = describe(tmp_path, "a.xlsx")[0]["a.xlsx"]

    assert [one for one in said if one not in text] == [], text
    assert [one for one in unsaid if one in text] == [], text
    size = re.search(r"'Sheet': (\d+) rows x (\d+) columns", text)
    call = re.search(r"to be read with (.*)", text)
    if size:
        read = eval(
            call[1].replace("'a.xlsx'", "path") if call else "pd.read_excel(path)",
            {"pd": pd, "path": tmp_path / "a.xlsx"},
        )
        assert read.shape == (int(size[1]), int(size[2]))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the system lists no open files")
def test_a_workbook_is_closed_when_it_was_read(tmp_path):
    with pd.ExcelWriter(tmp_path / "a.xlsx") as book:
        pd.DataFrame({"a": ["=1+1"]}).to_excel(book, index=False)
        pd.DataFrame({"b": ["=1+1"]}).to_excel(book, sheet_name="second", index=False)
    assert "formula" in "".join(describe(tmp_path, "a.xlsx")[0]["a.xlsx"])

    opened = [os.path.realpath(f"/proc/self/fd/{one}") for one in os.listdir("/proc/self/fd")]
    assert str(tmp_path / "a.xlsx") not in opened


def test_a_title_of_two_cells_that_a_spreadsheet_program_has_padded_is_no_header(tmp_path):
    rows = [",".join(map(str, [*row, *[""] * (22 - len(row))])) for row in SHEETS["a title of two cells"][0]]
    (tmp_path / "a.csv").write_text("\n".join(rows), encoding="utf-8")

    assert "3 rows x 22 columns, header in line 5" in describe(tmp_path, "a.csv")[0]["a.csv"]


def test_formulas_of_a_program_that_computes_nothing_are_named(tmp_path):
    workbook(tmp_path / "a.xlsx", [["k", "n", "m"], *([f"k{at}", at + 1, f"=B{at + 2}*2"] for at in range(4))])
    with zipfile.ZipFile(tmp_path / "a.xlsx") as book, zipfile.ZipFile(tmp_path / "b.xlsx", "w") as stored:
        for one in book.namelist():
            stored.writestr(one, re.sub(rb"</f><v ?/>|</f><v></v>", b"</f><v>0</v>", book.read(one)))

    told = describe(tmp_path, "b.xlsx")[0]["b.xlsx"]

    assert "4 formulas with the stored value 0, such as =B2*2, which may be no result" in told


def test_cells_that_only_have_a_format_do_not_count_as_columns(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [["a", "b"], *([at, at * 2] for at in range(500))]:
        book.active.append(row)
    book.active.cell(1, 16_384).number_format = "0%"
    book.save(tmp_path / "a.xlsx")

    assert "500 rows x 2 columns" in describe(tmp_path, "a.xlsx")[0]["a.xlsx"]


def test_sheets_of_the_same_columns_are_not_joined(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for title, columns in {"FY2022": "department", "FY2023": "department", "Heads": "head"}.items():
        sheet = book.create_sheet(title)
        for row in [[columns, "units"], *([f"D{at}", at * 7.5] for at in range(9))]:
            sheet.append(row)
    book.save(tmp_path / "a.xlsx")

    joins = describe(tmp_path, "a.xlsx")[1]

    assert [join for join in joins if "FY2022" in join and "FY2023" in join] == []
    assert [join for join in joins if "Heads" in join]


def test_values_of_bytes_are_told_apart(tmp_path):
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.execute("CREATE TABLE t (a BLOB, b BLOB)")
        database.executemany("INSERT INTO t VALUES (?, ?)", [(bytes([at]) * 16, b"x") for at in range(20)])
        database.commit()

    told = describe(tmp_path, "a.db")[0]["a.db"]

    assert "'a': BLOB, all different, e.g. '<16 bytes, SHA-1 " in told
    assert "'b': BLOB, always '<1 bytes" in told


def test_of_more_than_100000_values_of_json_the_first_are_judged(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps([{"id": at} for at in range(100_001)]), encoding="utf-8")
    (tmp_path / "b.json").write_text(json.dumps({"a": list(range(100_001))}), encoding="utf-8")

    told = describe(tmp_path, "a.json", "b.json")[0]

    assert "list of 100001 objects, judged by the first 100000" in told["a.json"]
    assert "list of int, 100001 items, judged by the first 100000, 0 … 99999" in told["b.json"]


def test_the_size_that_a_workbook_says_of_itself_is_not_believed(tmp_path):
    workbook(tmp_path / "a.xlsx", [["a", "b", "c"], *([at, at + 1, at + 2] for at in range(20))])
    with zipfile.ZipFile(tmp_path / "a.xlsx") as book, zipfile.ZipFile(tmp_path / "b.xlsx", "w") as wrong:
        for one in book.namelist():
            wrong.writestr(one, book.read(one).replace(b'<dimension ref="A1:C21"', b'<dimension ref="A1"'))

    told = describe(tmp_path, "b.xlsx")[0]["b.xlsx"]

    assert "20 rows x 3 columns" in told
    assert "'c': int, 2 … 21" in told


def test_sheets_tables_and_columns_that_are_not_looked_at_are_counted(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for at in range(44):
        book.create_sheet(f"S{at}").append(["a"])
    book.active.append([f"x{at}y" for at in range(1200)])
    book.active.append(list(range(1200)))
    book.save(tmp_path / "a.xlsx")
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        for at in range(45):
            database.execute(f"CREATE TABLE t{at:02} (a)")

    told = describe(tmp_path, "a.xlsx", "a.db")[0]

    assert "workbook with 45 sheets" in told["a.xlsx"]
    assert "1 rows x 1200 columns" in told["a.xlsx"]
    assert "15 more sheets, not looked at: 'S29', " in told["a.xlsx"]
    assert "15 more tables, not looked at: 't30', " in told["a.db"]


PDF = b"%PDF-1.4\n1 0 obj << /Type /Pages /Kids [2 0 R 3 0 R] /Count 2 >> endobj\n"
PAGES_OF_PDF = b"2 0 obj << /Type /Page >> endobj\n3 0 obj << /Type/Page /Parent 1 0 R >> endobj\n"
PACKED = (
    b"5 0 obj << /Type /ObjStm /N 2 /Filter /FlateDecode >>\nstream\n" + zlib.compress(PAGES_OF_PDF) + b"\nendstream"
)


@pytest.mark.parametrize("content", [PDF + PAGES_OF_PDF, PDF + PACKED + PACKED.replace(b"x", b"y")])
def test_a_pdf_is_told_by_its_pages_and_what_reads_it(content, tmp_path):
    (tmp_path / "a.pdf").write_bytes(content)

    told = describe(tmp_path, "a.pdf")[0]["a.pdf"]

    assert told.splitlines()[0] == "PDF, 2 pages"
    assert "obj" not in told
    assert "pypdf" in told


def test_a_pdf_that_is_none_says_so(tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"\0no")

    assert "not readable as pdf: it does not begin as a PDF does" in describe(tmp_path, "a.pdf")[0]["a.pdf"]


def test_a_word_document_is_told_by_its_text(tmp_path):
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    cell = "<w:tc><w:p><w:r><w:t>rate</w:t></w:r></w:p></w:tc>"
    body = f"<w:p><w:r><w:t>Fees of</w:t><w:tab/><w:t>2024</w:t></w:r></w:p><w:tbl><w:tr>{cell}</w:tr></w:tbl>"
    with zipfile.ZipFile(tmp_path / "a.docx", "w") as archive:
        archive.writestr("word/document.xml", f"<w:document {space}><w:body>{body}</w:body></w:document>")

    told = describe(tmp_path, "a.docx")[0]["a.docx"]

    assert told.splitlines()[:3] == [
        "Word document: text of 2 lines, 1 table, whose cells are lines here",
        "| Fees of\t2024",
        "| rate",
    ]
    assert "docx" in told.splitlines()[3]


def test_folders_of_an_archive_are_no_files(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("data/", "")
        archive.writestr("data/a.bin", "x")

    assert "ZIP archive of 1 file\n" in describe(tmp_path, "a.zip")[0]["a.zip"]


def test_texts_that_mean_nothing_are_texts_where_the_file_knows_nulls(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"land": ["NA", "DE", None], "note": ["", "x", ""]})
    frame.to_parquet(tmp_path / "a.parquet")
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        frame.to_sql("t", database, index=False)

    for told in describe(tmp_path, "a.parquet", "a.db")[0].values():
        assert re.search(r"'land': \S+, all different: 'NA', 'DE', 1 missing$", told, re.MULTILINE), told
        assert re.search(r"'note': \S+, 2 values: '' \(2\), 'x' \(1\)$", told, re.MULTILINE), told


def test_a_column_of_a_known_type_without_a_value_is_empty(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.table({"login": arrow.array([None, None], arrow.string()), "n": [1, 2]})
    parquet.write_table(table, tmp_path / "a.parquet")
    with closing(sqlite3.connect(tmp_path / "a.db")) as database:
        database.executescript("CREATE TABLE t (login string, n INTEGER); INSERT INTO t VALUES (NULL, 1), (NULL, 2)")

    for told in describe(tmp_path, "a.parquet", "a.db")[0].values():
        assert "'login': empty, of type string\n" in told


def test_an_index_that_pandas_has_written_is_no_column(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame({"v": [1, 2]}, index=pd.Index(["x", "y"], name="key")).to_parquet(tmp_path / "a.parquet")

    told = describe(tmp_path, "a.parquet")[0]["a.parquet"]

    assert "2 rows x 1 columns" in told
    assert "the index that pandas makes, no column: 'key': " in told


@pytest.mark.parametrize("suffix", ["parquet", "feather", "arrow"])
def test_columnar_files_are_told_with_their_own_types(tmp_path, suffix):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": [[1], []]})
    getattr(frame, f"to_{suffix.replace('arrow', 'feather')}")(tmp_path / f"a.{suffix}")

    told = describe(tmp_path, f"a.{suffix}")[0][f"a.{suffix}"]

    assert "2 rows x 3 columns" in told
    assert "'a': int64, 1 … 2" in told
    assert "'c': list of int, 0–1 items, 1 empty ([], not null)" in told


def test_a_file_of_stata_is_told_with_its_labels(tmp_path):
    frame = pd.DataFrame({"a": [1.5, None, 2.5], "s": pd.Categorical(["x", "y", "x"])})
    frame.to_stata(tmp_path / "a.dta", write_index=False, variable_labels={"a": "Income, EUR"})

    told = describe(tmp_path, "a.dta")[0]["a.dta"]

    assert "Stata: 3 rows x 2 columns" in told
    assert "'a': float64, 1.5 … 2.5, all different, 1 missing" in told
    assert "'s': category, 2 values: 'x' (2), 'y' (1)" in told
    assert "labels of its columns: 'a' 'Income, EUR'\nto be read with pd.read_stata('a.dta')" in told


def test_columns_of_one_name_are_told_each_with_its_values(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table([[1, 2], ["x", "y"]], names=["a", "a"]), tmp_path / "a.parquet")

    told = describe(tmp_path, "a.parquet")[0]["a.parquet"]

    assert "'a': int64, 1 … 2" in told
    assert "'a': string, all different: 'x', 'y'" in told
    assert "names that occur twice: 'a'" in told
    assert "a.1" not in told


def test_a_text_is_quoted_where_it_speaks_of_columns_of_the_other_files_in_whatever_order(tmp_path):
    (tmp_path / "a.csv").write_text("cust_id,n\n1,2\n", encoding="utf-8")
    (tmp_path / "a.md").write_text(
        "# Notes\n\n" + "Much ado. " * 300 + "\n\nA cust_id is given once.\n", encoding="utf-8"
    )

    told, _ = describe(tmp_path, "a.md", "a.csv")

    assert "line 5: A cust_id is given once." in told["a.md"]


LISTED = {
    "bullets in bold": ("* **rate**: what is taken of the value\n* **aci**: who authorizes\n", ["rate", "aci"]),
    "bullets in code": ("- `rate` - what is taken of the value\n- `aci` - who authorizes\n", ["rate", "aci"]),
    "plain bullets": ("- rate: what is taken of the value\n- aci: who authorizes\n", ["rate", "aci"]),
    "numbers": ("1. rate: what is taken of the value\n2. aci: who authorizes\n", ["rate", "aci"]),
    "definitions": ("rate\n:   what is taken of the value\n\naci\n:   who authorizes\n", ["rate", "aci"]),
    "a table": (
        "| field | meaning |\n|---|---|\n| rate | what is taken |\n| aci | who authorizes |\n",
        ["rate", "aci"],
    ),
    "code in a sentence": ("Fees come of the `rate` and of nothing else.\n", ["rate"]),
    "plain words": (
        "- At this rate we are done by June.\n- The aci is a word, so is rate.\n\nrate and see.\n",
        [],
    ),
}


@pytest.mark.parametrize("case", LISTED)
def test_items_of_a_list_that_are_columns_of_other_files_are_quoted(case, tmp_path):
    text, names = LISTED[case]
    (tmp_path / "fees.csv").write_text("rate,aci,n\n1,A,2\n3,B,4\n", encoding="utf-8")
    (tmp_path / "a.md").write_text("# Notes\n\n" + "Much ado. " * 300 + f"\n\n{text}\n\nAdo.\n", encoding="utf-8")

    told = describe(tmp_path, "a.md", "fees.csv")[0]["a.md"]

    quoted = [line for line in told.splitlines() if re.match(r"\| line \d+: (?!Notes)", line)]
    assert [next((name for name in ("rate", "aci") if name in one), one) for one in quoted] == names, told


IDS = [f"c{at}" for at in range(20)]
CODES = [f"{at:04}" for at in range(700, 1800, 50)]
SHOPS = range(500, 520)
KEYS = {  # fmt: off
    # name: (files with their columns, the lines)
    "a key and those that refer to it": (
        {"a.csv": {"id": IDS, "rank": range(20)}, "b.csv": {"customer": IDS[:9] * 2, "n": [5] * 18}},
        ["'a.csv'['id'] and 'b.csv'['customer'] share 9 values (of 20 and 9)"],
    ),
    "the key of a table named like the column": (
        {"users.csv": {"id": range(1, 8)}, "orders.csv": {"id": range(1, 15), "user_id": [3, 4, 5, 6] * 3 + [7, 7]}},
        ["'users.csv'['id'] and 'orders.csv'['user_id'] share 5 values (of 7 and 5)"],
    ),
    "each its own numbers": ({"a.csv": {"id": range(9)}, "b.csv": {"id": range(9)}}, []),
    "numbers of rows": (
        {
            f"{name}{at}.csv": {name: range(1, 20 + at)}
            for name in ("rownames", "row.names", "row_id", "X") for at in (1, 2)
        },
        [],
    ),
    "names of rows": (
        {"a.csv": {"rownames": IDS}, "b.csv": {"rownames": IDS}},
        ["'a.csv'['rownames'] and 'b.csv'['rownames'] share 20 values (of 20 and 20)"],
    ),
    "small groups": ({"a.csv": {"class": [1, 2, 3] * 5}, "b.csv": {"class": [1, 2, 3] * 4}}, []),
    "groups and a list of them": (
        {"a.csv": {"class": ["red", "blue", "green"]}, "b.csv": {"class": ["red", "blue", "green"] * 4}},
        ["'a.csv'['class'] and 'b.csv'['class'] share 3 values (of 3 and 3)"],
    ),
    "single letters": ({"a.csv": {"size": list("ABCDEFG")}, "b.csv": {"grade": list("ABCDEFG")}}, []),
    "years": ({"a.csv": {"year": range(2000, 2020)}, "b.csv": {"year": range(2000, 2020)}}, []),
    "years of another name": ({"a.csv": {"from": range(2000, 2020)}, "b.csv": {"from": range(2000, 2020)}}, []),
    "measures": ({"a.csv": {"price": range(100, 160)}, "b.csv": {"price": range(100, 160)}}, []),
    "counts": ({"a.csv": {"# of units": range(1000, 1030)}, "b.csv": {"units": range(1000, 1030)}}, []),
    "quantities within numbers of rows of the same name": (
        {"a.csv": {"Menge": range(900)}, "b.csv": {"Menge": range(10, 58, 2)}}, [],
    ),
    "amounts within numbers": ({"a.csv": {"id": range(3000)}, "b.csv": {"Umsatz": range(1001, 1049)}}, []),
    "some of a dense key": (
        {"a.csv": {"userid": range(1, 900)}, "b.csv": {"userid": [*range(10, 30)] * 2}},
        ["'a.csv'['userid'] and 'b.csv'['userid'] share 20 values (of 899 and 20)"],
    ),
    "some of a dense key of the table": (
        {"shops.csv": {"id": range(1, 900)}, "b.csv": {"shop": [*range(10, 30)] * 2}},
        ["'shops.csv'['id'] and 'b.csv'['shop'] share 20 values (of 899 and 20)"],
    ),
    "most of a dense key": (
        {"a.csv": {"Store": range(1, 1116)}, "b.csv": {"Store": [*range(1, 1000)] * 2}},
        ["'a.csv'['Store'] and 'b.csv'['Store'] share 999 values (of 1115 and 999)"],
    ),
    "some of a key with gaps": (
        {"a.csv": {"plz": range(10_000, 99_000, 40)}, "b.csv": {"plz": [*range(10_000, 20_000, 400)] * 2}},
        ["'a.csv'['plz'] and 'b.csv'['plz'] share 25 values (of 2225 and 25)"],
    ),
    "shares": ({"a.csv": {"x": [f"{n}%" for n in range(9)]}, "b.csv": {"x": [f"{n}%" for n in range(9)]}}, []),
    "floats": ({"a.csv": {"x": [n / 7 for n in range(9)]}, "b.csv": {"x": [n / 7 for n in range(9)]}}, []),
    "one line a pair": (
        {"a.csv": {"city": IDS, "town": IDS}, "b.csv": {"city": IDS * 2, "town": IDS * 2}},
        ["'a.csv'['city'] and 'b.csv'['city'] share 20 values (of 20 and 20)"],
    ),
    "what follows is left out": (
        {"a.csv": {"city": IDS}, "b.csv": {"city": IDS}, "c.csv": {"city": IDS}},
        ["'a.csv'['city'] and 'b.csv'['city'] share 20 values (of 20 and 20)",
         "'a.csv'['city'] and 'c.csv'['city'] share 20 values (of 20 and 20)"],
    ),
    "days": (
        {"a.csv": {"day": DAYS[:9]}, "b.csv": {"day": DAYS[:5] * 3}, "c.csv": {"born": DAYS[:9]}},
        ["'a.csv'['day'] and 'b.csv'['day'] share 5 values (of 9 and 5)"],
    ),
    "codes in text and in lists of numbers": (
        {"a.csv": {"mcc": CODES}, "b.json": [{"merchant_category_code": [int(code), 1700]} for code in CODES[:12]]},
        ["'a.csv'['mcc'] and 'b.json'['merchant_category_code'] share 13 values (of 22 and 13); text, with leading "
         "zeros, in 'a.csv', numbers in 'b.json': convert before joining"],
    ),
    "text and numbers without zeros": (
        {"a.json": [{"shop": str(one)} for one in range(500, 520)], "b.csv": {"shop": [*range(500, 510)] * 2}},
        ["'a.json'['shop'] and 'b.csv'['shop'] share 10 values (of 20 and 10); text in 'a.json', numbers in 'b.csv': "
         "convert before joining"],
    ),
    "numbers that were floats": (
        {"a.csv": {"shop": [f"{at}.0" for at in SHOPS]}, "b.json": [{"shop": str(at)} for at in SHOPS[:9]]},
        ["'a.csv'['shop'] and 'b.json'['shop'] share 9 values (of 20 and 9); text in 'b.json', numbers in 'a.csv': "
         "convert before joining"],
    ),
    "zeros in one of two texts": (
        {"a.csv": {"zip": [*CODES, "n/k"]}, "b.json": [{"zip": str(int(code))} for code in CODES]},
        ["'a.csv'['zip'] and 'b.json'['zip'] share 22 values (of 23 and 22); only 'a.csv' has leading zeros: convert "
         "before joining"],
    ),
    "upper and lower case": (
        {"a.csv": {"State": ["OHIO", "UTAH", "IOWA"]}, "b.csv": {"state": ["Ohio", "Utah", "Iowa", "Maine"] * 2}},
        ["'a.csv'['State'] and 'b.csv'['state'] share 3 values (of 3 and 4); upper and lower case differ: convert "
         "before joining"],
    ),
    "upper and lower case of other names": (
        {"a.csv": {"x": ["OHIO", "UTAH", "IOWA", "TEXAS", "MAINE"]},
         "b.csv": {"y": ["Ohio", "Utah", "Iowa", "Texas", "Maine"]}}, [],
    ),
    "blanks around": (
        {"a.csv": {"state": ["Ohio ", "Utah ", "Iowa "]}, "b.csv": {"state": ["Ohio", "Utah", "Iowa", "Maine"]}},
        ["'a.csv'['state'] and 'b.csv'['state'] share 3 values (of 3 and 4); blanks around them in 'a.csv': strip "
         "before joining"],
    ),
    "case and blanks": (
        {"a.csv": {"sku": [f"sku-{at}" for at in range(9)]}, "b.csv": {"SKU": [f"SKU-{at} " for at in range(9)]}},
        ["'a.csv'['sku'] and 'b.csv'['SKU'] share 9 values (of 9 and 9); upper and lower case differ; blanks around "
         "them in 'b.csv': convert and strip before joining"],
    ),
    "zeros and blanks": (
        {"a.csv": {"zip": [f"{code} " for code in CODES]}, "b.json": [{"zip": str(int(code))} for code in CODES]},
        ["'a.csv'['zip'] and 'b.json'['zip'] share 22 values (of 22 and 22); only 'a.csv' has leading zeros; blanks "
         "around them in 'a.csv': convert and strip before joining"],
    ),
    "zeros and case": (
        {"a.csv": {"sku": [*CODES, "AB", "CD"]}, "b.json": [{"sku": code} for code in [*CODES[3:], "ab", "cd"]]},
        ["'a.csv'['sku'] and 'b.json'['sku'] share 21 values (of 24 and 21); upper and lower case differ: convert "
         "before joining"],
    ),
    "repeated in both": (
        {"a.csv": {"sku": [*IDS, IDS[0]]}, "b.csv": {"sku": IDS * 2}},
        ["'a.csv'['sku'] and 'b.csv'['sku'] share 20 values (of 20 and 20); some occur more than once in both"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", KEYS)
def test_columns_that_join_files_are_keys_and_their_types_are_compared(case, tmp_path):
    files, lines = KEYS[case]
    for name, columns in files.items():
        if name.endswith(".json"):
            (tmp_path / name).write_text(json.dumps(columns), encoding="utf-8")
        else:
            table = pd.DataFrame({key: pd.Series(list(values), dtype=object) for key, values in columns.items()})
            table.to_csv(tmp_path / name, index=False)

    assert describe(tmp_path, *files)[1] == lines


BLOCKS = {
    "padded": TITLED,
    "ragged": "One\nday,n\n1,5\n2,6\n\nTwo\nday,n,m,k\n1,7,8,9\n2,7,8,9\n3,7,8,9\n",
    "quoted lines": 'day,n\n"1\nx",5\n2,6\n\nshop,n,m\n"a\n\nb",7,8\nc,9,1\n',
    "German": "Tag;Umsatz;\n1;1,5;\n2;2,5;\n;;\nPLZ;Ort;Menge\n01067;Dresden;3\n50667;Köln;4\n",
    "side by side": "day,n,,shop,n\n1,5,,A,7\n2,6,,B,8\n3,4,,,\n",
    "side by side, titles": "A,,,,B,,\n,,,,,,\nday,n,m,,city,n,q\n1,5,3,,Oslo,7,1\n2,6,3,,Rome,8,2\n,,,,Bern,9,3\n",
    "side by side, at other lines": "day,n,,,\n1,5,,,\n2,6,,shop,m\n3,7,,A,4\n4,8,,B,3\n",
    "side by side, same names": "year;n;;year;n\n2020;1,5;;2020;2,5\n2021;1,5;;2021;2,5\n",
    "side and below": "a,n,,b,m\nx,1,,y,2\nx,3,,y,4\n,,,,\nc,k,,,\nz,5,,,\nz,6,,,\n",
}


@pytest.mark.parametrize("case", BLOCKS)
def test_the_calls_for_several_tables_read_each_of_them_and_nothing_else(case, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(BLOCKS[case], encoding="utf-8")
    told = describe(tmp_path, "a.csv")[0]["a.csv"]
    sizes = re.findall(r"header in line \d+, (\d+) rows? x (\d+) columns", told)
    calls = [
        match.replace("'a.csv'", "path").replace("…", "path")
        for match in re.findall(r"^ *(pd\.read_csv.*)", told, re.M)
    ]

    read = [eval(call, {"pd": pd, "path": path}) for call in calls]

    assert [one.shape for one in read] == [(int(rows), int(columns)) for rows, columns in sizes]
    assert len(read) > 1
    assert all(one.dtypes.map(pd.api.types.is_numeric_dtype).any() for one in read)


def test_the_tables_of_a_sheet_are_told_apart(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["Sales"], ["day", "n"], [1, 5], [2, 6], [], ["Stores"], ["city", "n", "m"], ["Oslo", 7, 8]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")

    told = describe(tmp_path, "a.xlsx")[0]["a.xlsx"]

    assert "sheet 'Sheet': 2 tables, one below the other" in told
    assert "table 2 under 'Stores': header in line 7, 1 row x 3 columns" in told
    call = "pd.read_excel('a.xlsx', skiprows=1, nrows=2, usecols=range(2))"
    assert call in told
    read = eval(call.replace("'a.xlsx'", "path"), {"pd": pd, "path": tmp_path / "a.xlsx"})
    assert read.to_dict("list") == {"day": [1, 2], "n": [5, 6]}


def test_tables_of_a_sheet_that_stand_side_by_side_are_read_by_their_calls(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["Sales", None, None, "Stores"], [], ["day", "n", None, "city", "n"], [1, 5, None, "Oslo", 7], [2, 6]):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")

    told = describe(tmp_path, "a.xlsx")[0]["a.xlsx"]

    assert "sheet 'Sheet': 2 tables, side by side, parted by empty columns" in told
    assert "table 2 under 'Stores': columns 4–5, header in line 3, 1 row x 2 columns" in told
    call = "pd.read_excel(…, skiprows=2, nrows=1, usecols=range(3, 5))"
    assert call in told
    read = eval(call.replace("…", "path"), {"pd": pd, "path": tmp_path / "a.xlsx"})
    assert read.to_dict("list") == {"city": ["Oslo"], "n.1": [7]}
    assert "n.1" in told


@pytest.mark.parametrize(
    "content",
    [
        "name,men,share,,women,share\nA,1,2,,3,4\nB,5,6,,7,8\n",
        "name,,n,m\nA,,1,2\nB,,3,4\n",
        "a,n,,\nx,1,,note\ny,2,,\n",
    ],
)
def test_an_empty_column_alone_makes_no_two_tables(content, tmp_path):
    (tmp_path / "a.csv").write_text(content, encoding="utf-8")

    assert "side by side" not in describe(tmp_path, "a.csv")[0]["a.csv"]


def test_what_a_call_of_a_description_reads_is_what_was_described(tmp_path):
    (tmp_path / "de.csv").write_bytes(GERMAN.encode("cp1252"))
    told = describe(tmp_path, "de.csv")[0]["de.csv"]
    call = told.rsplit("to be read with ", 1)[1].replace("'de.csv'", repr(str(tmp_path / "de.csv")))

    read = eval(call, {"pd": pd})

    assert read.Umsatz.tolist() == [1234.5, 99.9]
    assert read.Region.tolist() == ["Köln", "Düren"]


def test_the_same_content_is_read_once(tmp_path):
    (tmp_path / "a.csv").write_text("a\n1\n", encoding="utf-8")
    describer = Describer(tmp_path, apart=False)
    first = describer.describe_all([("a.csv", "a.csv")], seconds=20)
    os.utime(tmp_path / "a.csv", (1, 1))

    again = describer.describe_all([("a.csv", "a.csv")], seconds=20)
    (tmp_path / "a.csv").write_text("b\n1\n", encoding="utf-8")
    changed = describer.describe_all([("a.csv", "a.csv")], seconds=20)

    assert again is first
    assert "'b': int, always 1" in str(changed)


def endless_view(path, columns="x"):
    endless = f"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT {columns} FROM c"
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"CREATE VIEW v AS {endless}")
        database.commit()


def workbook_of_far_cells(path):
    pytest.importorskip("openpyxl").Workbook().save(path.with_suffix(".empty"))
    cells = "".join(f'<row r="{n}"><c r="XFD{n}"><v>1</v></c></row>' for n in range(1, 10_001))
    sheet = f'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{cells}'
    with zipfile.ZipFile(path.with_suffix(".empty")) as empty, zipfile.ZipFile(path, "w") as made:
        for name in empty.namelist():
            is_sheet = name.endswith("sheet1.xml")
            made.writestr(name, f"{sheet}</sheetData></worksheet>" if is_sheet else empty.read(name))


def long_texts_in_a_dictionary(path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = arrow.DictionaryArray.from_arrays(arrow.array([0] * 10_000, arrow.int32()), arrow.array(["x" * 1_000_000]))
    parquet.write_table(arrow.table({"a": texts}), path, compression="zstd", store_schema=False)


HOSTILE = {
    "a.csv": lambda path: path.write_bytes(b"a," * 50_000 + b"a\n" + b"1\n" * 1_000_000),
    "b.csv": lambda path: path.write_bytes(b"," * 200_000 + b"\n" + b"x" * 200_000),
    "d.csv.gz": lambda path: path.write_bytes(gzip.compress(b"x" * 100_000_000, 1)),
    "a.json": lambda path: path.write_text("[" * 5_000 + "]" * 5_000),
    "b.json": lambda path: path.write_text("[" * 200_000 + "]" * 200_000),
    "a.jsonl": lambda path: path.write_text("[" * 5_000 + "]" * 5_000),
    "a.parquet": long_texts_in_a_dictionary,
    "a.xlsx": workbook_of_far_cells,
    "a.db": endless_view,
    "a.html": lambda path: path.write_text("<table>" * 100_000 + "<tr><td>x" * 10_000),
    "b.html": lambda path: path.write_text("<table>" + "<tr><td rowspan=99999 colspan=99999>x" * 10_000),
    "a.md": lambda path: path.write_text("=" * 50_000 + "\n" + "a = " * 50_000),
}


def test_hostile_files_end_in_words_and_do_not_touch_what_the_kernel_holds(tmp_path):
    with LocalKernel(tmp_path / "kernel") as kernel:
        for name, make in HOSTILE.items():
            make(kernel.folder / name)
        (kernel.folder / "last.csv").write_text("a\n1\n", encoding="utf-8")
        kernel.execute("x = 41", seconds=30)
        names = [*HOSTILE, "last.csv"]

        found = kernel.describe_files([(name, name) for name in names], seconds=1.5)["files"]

        assert kernel.execute("x + 1", seconds=30).result == "42"
    assert [one["name"] for one in found] == names
    assert all(one["headline"] for one in found)
    assert sum(map(len, map(str, found))) < 30_000 * len(names)
    assert "'a': int, always 1" in str(found[-1])


def test_code_describes_a_file_by_a_function_that_is_there_and_that_a_variable_hides(tmp_path):
    with LocalKernel(tmp_path / "kernel") as kernel:
        (kernel.folder / "a.csv").write_text("a\n1\n", encoding="utf-8")

        shown = kernel.execute("describe('a.csv')", seconds=30)
        listed = kernel.execute("print(describe('.'))", seconds=30)
        missing = kernel.execute("describe('b.csv')", seconds=30)
        hidden = kernel.execute("describe = 5\ndescribe", seconds=30)

        assert kernel.execute("describe + 1", seconds=30).result == "6"
    assert "all of it:\n  | a\n  | 1" in shown.result
    assert shown.variables == ()
    assert "'a.csv' 4 B" in listed.stdout
    assert "FileNotFoundError" in missing.error
    assert hidden.result == "5"
